"""CCE's dialect: every amount that it accepts, and a sentence for each that it refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.configuration import DEFAULT
from lamina.core.grants import ComputePolicy
from lamina.core.requests import ContainerRequest
from lamina.dialects import parse
from lamina.errors import BadInput
from tests.dialects.pods import changes_of, container, pod

MEMORY, CORES, GPU = "volcano.sh/gpu-mem.128Mi", "volcano.sh/gpu-core.percentage", "nvidia.com/gpu"


def manifest(gpus: str | None = None, **asked: Any) -> dict[str, Any]:
    names = {"memory": MEMORY, "cores": CORES, "gpu": GPU}
    made = pod(container(**{names[key]: value for key, value in asked.items()}), schedulerName="volcano")
    if gpus is not None:
        made["metadata"]["labels"] = {"volcano.sh/gpu-num": gpus}
    return made


def only(gpus: str | None = None, **asked: Any) -> ContainerRequest:
    found = parse(manifest(gpus, **asked), DEFAULT)
    assert found is not None
    [one] = found.containers
    return one


def test_s0_1_a_unit_is_128_mib() -> None:
    found = parse(manifest(memory=40), DEFAULT)
    assert found is not None and found.dialect == "cce" and found.compute_policy is ComputePolicy.CAP
    assert (found.containers[0].count, found.containers[0].memory_mib, found.containers[0].cores) == (1, 5120, 0)


@pytest.mark.parametrize("cores", range(5, 101, 5))
def test_s0_2_every_multiple_of_5_is_a_share_of_compute(cores: int) -> None:
    assert only(memory=40, cores=cores).cores == cores


@pytest.mark.parametrize("cores", sorted(set(range(-1, 130)) - set(range(5, 101, 5))))
def test_s0_4_other_shares_of_compute_are_refused(cores: int) -> None:
    with pytest.raises(BadInput, match=f"{CORES} must be a multiple of 5 from 5 to 100, got {cores}$"):
        only(memory=40, cores=cores)


def test_s0_4_compute_without_memory_is_refused() -> None:
    with pytest.raises(BadInput, match=f"{CORES} requires memory; request {MEMORY} as well"):
        only(cores=25)


@pytest.mark.parametrize("memory", [0, -1, "0.5", "x"])
def test_s0_4_memory_is_an_integer_of_units(memory: object) -> None:
    with pytest.raises(BadInput, match=f'container "main": {MEMORY} must be an integer from 1 to '):
        only(memory=memory)


@pytest.mark.parametrize(
    ("memory", "instead"), [("1Ki", ""), ("10Gi", "; for 10Gi, write 80"), ("1G", "; for 1G, write 8")]
)
def test_memory_with_a_unit_is_refused(memory: str, instead: str) -> None:
    with pytest.raises(BadInput) as refused:
        only(memory=memory)
    expected = f"{MEMORY} must be an integer in units of 128 MiB without a unit{instead}, got {memory}"
    assert str(refused.value) == f'container "main": {expected}'


def test_s0_8_init_containers_get_no_share() -> None:
    for sidecar in ({}, {"restartPolicy": "Always"}):
        early = {**container("early", **{MEMORY: 8}), **sidecar}
        with pytest.raises(
            BadInput, match=f'container "early": an init container cannot request {MEMORY}; remove it there'
        ):
            parse(pod(container("main"), init=(early,)), DEFAULT)


def test_s0_11_amounts_split_evenly_over_the_gpus_of_the_label() -> None:
    found = only("2", memory=80, cores=50)
    assert (found.count, found.memory_mib, found.cores) == (2, 5120, 25)


@given(st.integers(1, 16), st.integers(1, 2000), st.integers(1, 20))
def test_s0_11_nothing_is_lost_or_gained_by_the_split(gpus: int, units: int, fives: int) -> None:
    try:
        found = only(str(gpus), memory=units, cores=5 * fives)
    except BadInput:
        assert units % gpus or (5 * fives) % (5 * gpus)
        return
    assert found.memory_mib is not None
    assert (found.count, found.count * found.memory_mib, found.count * found.cores) == (gpus, units * 128, 5 * fives)


@pytest.mark.parametrize(
    ("gpus", "asked", "sentence"),
    [
        ("2", {"memory": 81}, f"{MEMORY} must be a multiple of 2 because label volcano.sh/gpu-num is 2, got 81"),
        (
            "2",
            {"memory": 80, "cores": 25},
            f"{CORES} must be a multiple of 10 because .* is 2, got 25",
        ),
        ("0", {"memory": 80}, 'label volcano.sh/gpu-num must be an integer from 1 to 16, got "0"'),
        ("two", {"memory": 80}, 'label volcano.sh/gpu-num must be an integer from 1 to 16, got "two"'),
        ("17", {"memory": 80}, 'label volcano.sh/gpu-num must be an integer from 1 to 16, got "17"'),
    ],
)
def test_s0_11_an_uneven_split_is_refused(gpus: str, asked: dict[str, int], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        only(gpus, **asked)


@pytest.mark.parametrize("percent", range(1, 100))
def test_a_fraction_of_a_gpu_is_a_percentage_of_its_memory(percent: int) -> None:
    found = only(gpu=f"0.{percent:02d}")
    assert (found.count, found.memory_percent, found.cores) == (1, percent, 0)


def test_admission_writes_a_fraction_in_a_form_that_the_api_server_accepts() -> None:
    asked = manifest(gpu="0.1")
    resources = asked["spec"]["containers"][0]["resources"]
    resources["requests"] = dict(resources["limits"])
    for change in changes_of(asked, DEFAULT):
        *parents, last = [part.replace("~1", "/") for part in change.pointer.split("/")[1:]]
        place: Any = asked
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[last] = change.value
    assert resources == {"limits": {GPU: "1", "nvidia.com/gpumem-percentage": "10"}, "requests": {GPU: "1"}}
    before, after = parse(manifest(gpu="0.1"), DEFAULT), parse(asked, DEFAULT)
    assert before is not None and after is not None and before == after


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"gpu": "0.125"}, "must be an integer from 1 to 1024 or a fraction from 0.01 to 0.99"),
        ({"gpu": "0.001"}, "must be an integer from 1 to 1024 or a fraction from 0.01 to 0.99"),
        ({"gpu": "1.5"}, "must be an integer from 1 to 1024"),
        ({"gpu": "2147483648"}, "must be an integer from 1 to 1024"),
    ],
)
def test_other_fractions_are_refused(asked: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        only(**asked)


def test_a_fraction_stands_alone_and_equal_in_limit_and_request() -> None:
    both = pod(container(**{GPU: "0.5", "nvidia.com/gpumem": 100}))
    with pytest.raises(BadInput, match=r"nvidia.com/gpu must be an integer if .* is requested too"):
        parse(both, DEFAULT)
    unequal = manifest(gpu="0.5")
    unequal["spec"]["containers"][0]["resources"]["requests"] = {GPU: "0.4"}
    with pytest.raises(BadInput, match=r"must have a request equal to its limit 0\.5, got 0\.4"):
        parse(unequal, DEFAULT)
