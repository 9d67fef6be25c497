"""Volcano's dialect, a row each: what a container that requests this gets, and what is refused."""

from typing import Any

import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.core.requests import ContainerRequest, GpuSelector, PodRequest
from lamina.dialects import explain_missing_defaults, parse
from lamina.errors import BadInput
from tests.dialects.pods import asking, changes_of, container, pod

PREFIX = "volcano.sh/vgpu-"


def manifest(annotations: dict[str, str] | None = None, **asked: Any) -> dict[str, Any]:
    """A pod whose container requests `number=1` as volcano.sh/vgpu-number."""
    named = {PREFIX + key.replace("_", "-"): value for key, value in asked.items()}
    return pod(container(**named), annotations=annotations or {})


def request(annotations: dict[str, str] | None = None, config: Config = DEFAULT, **asked: Any) -> PodRequest:
    found = parse(manifest(annotations, **asked), config)
    assert found is not None and found.dialect == "volcano"
    return found


def only(config: Config = DEFAULT, **asked: Any) -> ContainerRequest:
    [found] = request(config=config, **asked).containers
    return found


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"number": 1, "cores": 50, "memory": 3000}, (1, 3000, None, 50)),
        ({"number": 2, "memory": 1024}, (2, 1024, None, 0)),
        ({"number": 1}, (1, None, 100, 0)),
        ({"memory": 3000}, (1, 3000, None, 0)),
        ({"cores": 50}, (1, None, 100, 50)),
        ({"memory_percentage": 25}, (1, None, 25, 0)),
        ({"number": 1, "memory": 3000, "memory_percentage": 25}, (1, None, 25, 0)),
        ({"number": "2", "memory": "10k", "cores": "100"}, (2, 10000, None, 100)),
    ],
)
def test_what_a_container_gets(asked: dict[str, Any], expected: tuple[object, ...]) -> None:
    found = only(**asked)
    assert (found.count, found.memory_mib, found.memory_percent, found.cores) == expected
    assert not found.exclusive


def test_one_unit_of_memory_is_as_large_as_configured() -> None:
    assert only(load("volcano: {gpuMemoryFactor: 10}", "c"), memory=300).memory_mib == 3000


def test_names_are_configurable() -> None:
    config = load("volcano: {resourceCountName: example.com/gpus, resourceMemoryName: example.com/mem}", "c")
    found = parse(asking(**{"example.com/gpus": 2, "example.com/mem": 5000}), config)
    assert found is not None and (found.containers[0].count, found.containers[0].memory_mib) == (2, 5000)
    with pytest.raises(BadInput, match=r"unknown resource volcano.sh/vgpu-number"):
        parse(manifest(number=1), config)


def test_a_name_cannot_have_two_meanings() -> None:
    with pytest.raises(BadInput, match=r"volcano.resourceCountName must be different names, got nvidia.com/gpu"):
        load("volcano: {resourceCountName: nvidia.com/gpu}", "c")


@pytest.mark.parametrize("amount", [0, -1, "0.5", "many"])
@pytest.mark.parametrize("name", ["number", "memory"])
def test_counts_and_amounts_are_integers_from_1(name: str, amount: object) -> None:
    with pytest.raises(BadInput, match=f'container "main": volcano.sh/vgpu-{name} must be an integer from 1 to '):
        only(**{"number": 1, "memory": 1, name: amount})


@pytest.mark.parametrize(("name", "most"), [("number", 1024), ("memory", 2147483647)])
def test_counts_and_amounts_have_an_upper_bound(name: str, most: int) -> None:
    assert only(**{"number": 1, name: most}).count in (1, most)
    for amount in (most + 1, str(2**31), "3000000k"):
        with pytest.raises(BadInput, match=f"vgpu-{name} must be an integer from 1 to {most}, got {amount}$"):
            only(**{"number": 1, name: amount})


@pytest.mark.parametrize(("name", "amount"), [("cores", 101), ("cores", -1), ("memory_percentage", 0)])
def test_percentages_are_percentages(name: str, amount: int) -> None:
    with pytest.raises(BadInput, match=f"must be an integer from [01] to 100, got {amount}$"):
        only(**{"number": 1, name: amount})


def test_init_containers_and_sidecars_count_as_in_kubernetes() -> None:
    ask = {PREFIX + "number": 1, PREFIX + "memory": 100}
    early, sidecar = container("early", **ask), {**container("sidecar", **ask), "restartPolicy": "Always"}
    found = parse(pod(container("main", **ask), init=(early, sidecar)), DEFAULT)
    assert found is not None
    assert [(each.container, each.init, each.sidecar) for each in found.containers] == [
        ("early", True, False),
        ("sidecar", True, True),
        ("main", False, False),
    ]


def test_annotations_select_gpus() -> None:
    found = request(
        {
            "nvidia.com/use-gputype": "A100, V100",
            "volcano.sh/vgpu-use-gpuuuid": "GPU-a,GPU-b",
            "volcano.sh/vgpu-nouse-gpuuuid": "GPU-c",
        },
        number=1,
    )
    assert found.selector == GpuSelector(types=("A100", "V100"), uuids=("GPU-a", "GPU-b"), not_uuids=("GPU-c",))


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({"volcano.sh/vgpu-use-uuid": "GPU-a"}, "unknown annotation volcano.sh/vgpu-use-uuid; did you mean"),
        ({"volcano.sh/vgpu-mode": "soft"}, 'annotation volcano.sh/vgpu-mode must be hami-core, mig or mps, got "soft"'),
    ],
)
def test_an_annotation_that_would_be_ignored_is_refused(annotations: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        request(annotations, number=1)


def test_admission_fills_in_the_number_and_the_scheduler() -> None:
    scheduler, number = changes_of(manifest(memory=3000), DEFAULT)
    assert scheduler[:2] == ("/spec/schedulerName", "volcano")
    assert number[:2] == ("/spec/containers/0/resources/limits/volcano.sh~1vgpu-number", "1")
    assert changes_of(manifest(number=1, memory=3000), DEFAULT) == (scheduler,)


def test_a_pod_that_bypassed_admission_is_not_placed() -> None:
    unseen = manifest(memory=3000)
    found = parse(unseen, DEFAULT)
    assert found is not None
    assert "volcano.sh/vgpu-number is missing" in explain_missing_defaults(unseen, found, DEFAULT)
    seen = manifest(number=1, memory=3000)
    assert explain_missing_defaults(seen, found, DEFAULT) == ""
