"""Another size in a pod template, as each dialect writes it, and a sentence where a dialect cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.configuration import DEFAULT
from lamina.dialects import WantedSize, parse, resize_template
from lamina.errors import BadInput
from tests.dialects.pods import container, pod

HAMI = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 20}
OTHER_NAME = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "nvidia.com/cores": 20}
VOLCANO = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000, "volcano.sh/vgpu-cores": 20}
CCE: dict[str, Any] = {"volcano.sh/gpu-mem.128Mi": 8, "volcano.sh/gpu-core.percentage": 20}


def resized(template: dict[str, Any], memory: int | None, cores: int | None = None) -> tuple[int | None, int]:
    request = parse(resize_template(template, "main", WantedSize(memory, cores), DEFAULT), DEFAULT)
    assert request is not None
    return request.containers[-1].memory_mib, request.containers[-1].cores


@given(memory=st.integers(1, 100_000), cores=st.integers(1, 99))
@pytest.mark.parametrize("amounts", [HAMI, OTHER_NAME, VOLCANO])
def test_every_size_that_can_be_requested_is_what_is_requested_then(
    amounts: dict[str, Any], memory: int, cores: int
) -> None:
    template = pod(container(**amounts))
    assert resized(template, memory, cores) == (memory, cores)
    assert resized(template, memory) == (memory, 20)
    assert resized(template, None, cores) == (4000, cores)
    assert template == pod(container(**amounts)), "the template itself stays as it was"


def test_a_percentage_gives_way_to_the_amount() -> None:
    template = pod(container(gpu=1, gpumem_percentage=50))
    assert resized(template, 3000) == (3000, 0)


def test_requests_stay_equal_to_limits() -> None:
    both = {"name": "main", "resources": {"limits": HAMI, "requests": HAMI}}
    changed = resize_template(pod(both), "main", WantedSize(6000, 30), DEFAULT)
    resources = changed["spec"]["containers"][0]["resources"]
    assert (
        resources["limits"]
        == resources["requests"]
        == {**HAMI, "nvidia.com/gpumem": "6000", "nvidia.com/gpucores": "30"}
    )


def test_memory_of_cce_is_written_in_its_unit() -> None:
    template = pod(container(**CCE), schedulerName="volcano")
    assert resized(template, 2560, 40) == (2560, 40)
    with pytest.raises(BadInput, match="memory must be a multiple of 128 MiB"):
        resized(template, 2561)


def kai(**written: str) -> dict[str, Any]:
    return pod(container(), annotations=written, schedulerName="kai-scheduler")


def test_memory_of_kai_is_written_into_its_annotations() -> None:
    assert resized(kai(**{"gpu-memory": "2000"}), 3000) == (3000, 0)
    assert resized(kai(**{"nvidia.com/container.main.gpu-memory.request": "2Gi"}), 3000) == (3000, 0)


@pytest.mark.parametrize(
    ("template", "memory", "cores", "why"),
    [
        (kai(**{"gpu-fraction": "0.5"}), 3000, None, "annotation gpu-fraction has no amount of memory"),
        (kai(**{"gpu-memory": "2000"}), None, 30, "annotations of KAI have no key for compute"),
        (pod(container()), 3000, None, 'container "main" of the template requests no share of a GPU'),
        (pod(container("side", **HAMI), container()), 3000, None, 'container "main" of the template requests no share'),
    ],
)
def test_what_a_dialect_cannot_say_is_refused(template: Any, memory: int | None, cores: int | None, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        resized(template, memory, cores)
