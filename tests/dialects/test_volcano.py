"""Volcano's vocabulary, a row each: what a container that asks this gets, and what is refused."""

from typing import Any

import pytest

from lamina.dialects import defaults, parse, unseen_by_admission
from lamina.dialects.config import DEFAULT, Config, load
from lamina.errors import BadInput
from lamina.model.requests import ContainerRequest, PodRequest, Wishes
from tests.dialects.pods import asking, container, pod

PREFIX = "volcano.sh/vgpu-"


def manifest(annotations: dict[str, str] | None = None, **asked: Any) -> dict[str, Any]:
    """A pod whose container asks `number=1` as volcano.sh/vgpu-number."""
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


def test_a_name_serves_one_thing_in_both_vocabularies_together() -> None:
    with pytest.raises(BadInput, match=r"volcano.resourceCountName .* are both nvidia.com/gpu|are both nvidia.com/gpu"):
        load("volcano: {resourceCountName: nvidia.com/gpu}", "c")


@pytest.mark.parametrize("amount", [0, -1, "0.5", "1Gi", "many"])
@pytest.mark.parametrize("name", ["number", "memory"])
def test_counts_and_amounts_are_whole_numbers_from_1(name: str, amount: object) -> None:
    with pytest.raises(BadInput, match=f"container main: volcano.sh/vgpu-{name} is "):
        only(**{"number": 1, name: amount})


@pytest.mark.parametrize(("name", "amount"), [("cores", 101), ("cores", -1), ("memory_percentage", 0)])
def test_percentages_are_percentages(name: str, amount: int) -> None:
    with pytest.raises(BadInput, match="allowed is a whole number from"):
        only(**{"number": 1, name: amount})


def test_init_containers_and_sidecars_count_as_in_kubernetes() -> None:
    ask = {PREFIX + "number": 1, PREFIX + "memory": 100}
    early, beside = container("early", **ask), {**container("beside", **ask), "restartPolicy": "Always"}
    found = parse(pod(container("main", **ask), init=(early, beside)), DEFAULT)
    assert found is not None
    assert [(each.container, each.init, each.sidecar) for each in found.containers] == [
        ("early", True, False),
        ("beside", True, True),
        ("main", False, False),
    ]


def test_wishes() -> None:
    found = request(
        {
            "nvidia.com/use-gputype": "A100, V100",
            "volcano.sh/vgpu-use-gpuuuid": "GPU-a,GPU-b",
            "volcano.sh/vgpu-nouse-gpuuuid": "GPU-c",
        },
        number=1,
    )
    assert found.wishes == Wishes(types=("A100", "V100"), uuids=("GPU-a", "GPU-b"), not_uuids=("GPU-c",))


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({"volcano.sh/vgpu-use-uuid": "GPU-a"}, "unknown annotation volcano.sh/vgpu-use-uuid; did you mean"),
        ({"volcano.sh/vgpu-mode": "soft"}, "annotation volcano.sh/vgpu-mode is 'soft'"),
    ],
)
def test_a_choice_that_would_be_lost_is_refused(annotations: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        request(annotations, number=1)


def test_admission_fills_in_the_number_and_leaves_the_scheduler() -> None:
    [fill] = defaults(manifest(memory=3000), DEFAULT)
    assert fill[:2] == ("/spec/containers/0/resources/limits/volcano.sh~1vgpu-number", "1")
    assert defaults(manifest(number=1, memory=3000), DEFAULT) == ()


def test_a_pod_that_admission_did_not_see_is_not_placed() -> None:
    unseen = manifest(memory=3000)
    found = parse(unseen, DEFAULT)
    assert found is not None
    assert "names no volcano.sh/vgpu-number" in unseen_by_admission(unseen, found, DEFAULT)
    seen = manifest(number=1, memory=3000)
    assert unseen_by_admission(seen, found, DEFAULT) == ""
