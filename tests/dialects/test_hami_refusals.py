"""What HAMi misreads or takes silently is refused here, in one sentence that says what is allowed."""

from typing import Any

import pytest

from lamina.dialects import parse
from lamina.dialects.config import DEFAULT, load
from lamina.errors import BadInput
from tests.dialects.pods import asking, container, pod


def refusal(manifest: dict[str, Any], config: str = "") -> str:
    with pytest.raises(BadInput) as refused:
        parse(manifest, load(config, "config"))
    text = str(refused.value)
    assert "\n" not in text
    return text


NOT_POSITIVE = [0, -1, "-5", "0", "1.5", 2.5, "1500m"]


@pytest.mark.parametrize("amount", NOT_POSITIVE)
@pytest.mark.parametrize("name", ["gpu", "gpumem"])
def test_counts_and_amounts_are_whole_numbers_from_1(name: str, amount: object) -> None:
    text = refusal(asking(**{name: amount}))
    assert text == f"container main: nvidia.com/{name} is {amount!r}; allowed is a whole number from 1"


@pytest.mark.parametrize("amount", [*NOT_POSITIVE, 101, "1k", "1e3"])
def test_a_memory_percentage_is_1_to_100(amount: object) -> None:
    assert "nvidia.com/gpumem-percentage is" in (text := refusal(asking(gpu=1, gpumem_percentage=amount)))
    assert text.endswith("allowed is a whole number from 1 to 100")


@pytest.mark.parametrize("amount", [-1, "0.5", 101, "1k"])
def test_cores_are_0_to_100(amount: object) -> None:
    assert refusal(asking(gpu=1, gpucores=amount)).endswith("allowed is a whole number from 0 to 100")


@pytest.mark.parametrize("amount", [-1, 2, 100, "0.5"])
def test_priority_is_0_or_1(amount: object) -> None:
    assert refusal(asking(gpu=1, gpumem=1, priority=amount)).endswith("allowed is a whole number from 0 to 1")


@pytest.mark.parametrize("amount", ["10Gi", "1Ki", "5000Mi"])
def test_memory_with_a_binary_unit_is_refused_because_the_unit_is_mib_already(amount: str) -> None:
    assert "powers of 1024" in refusal(asking(gpu=1, gpumem=amount))


@pytest.mark.parametrize("amount", ["much", "", "10 000", True, [1]])
def test_what_is_no_number_is_refused(amount: object) -> None:
    assert refusal(asking(gpu=1, gpumem=amount)).startswith("container main: nvidia.com/gpumem is ")


@pytest.mark.parametrize("name", ["gpu", "gpumem", "gpumem-percentage", "gpucores", "priority"])
def test_an_empty_value_is_not_taken_for_an_absent_one(name: str) -> None:
    spec = {"name": "c", "resources": {"limits": {"nvidia.com/gpucores": 1, f"nvidia.com/{name}": None}}}
    assert f"nvidia.com/{name} is None" in refusal(pod(spec))


def test_an_amount_beside_a_percentage_is_refused() -> None:
    text = refusal(asking(gpu=1, gpumem=3000, gpumem_percentage=10))
    assert text == "container main names both nvidia.com/gpumem and nvidia.com/gpumem-percentage; name one of them"


def test_a_priority_without_a_gpu_is_refused() -> None:
    assert "asks no GPU; name nvidia.com/gpu as well" in refusal(asking(priority=1))


def test_without_a_default_number_the_count_must_be_named() -> None:
    assert "defaultGPUNum is 0; name nvidia.com/gpu as well" in refusal(asking(gpumem=1), "hami: {defaultGPUNum: 0}")


def test_a_privileged_container_cannot_be_held_to_a_share() -> None:
    privileged = container(gpu=1, gpumem=100) | {"securityContext": {"privileged": True}}
    assert refusal(pod(privileged)).startswith("container main is privileged")
    counting = parse(pod(container(gpu=1) | {"securityContext": {"privileged": True}}), DEFAULT)
    assert counting is not None
    assert counting.only_plain.startswith("container main is privileged")
    other = container("helper") | {"securityContext": {"privileged": True}}
    assert parse(pod(container(gpu=1), other), DEFAULT) is not None


def test_a_limit_that_differs_from_the_request_is_refused() -> None:
    spec = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}}
    assert refusal(pod(spec)) == "container c: nvidia.com/gpu has the limit 1 and the request 2; make them equal"


@pytest.mark.parametrize("resources", [[], "x", 3, {"limits": [1]}, {"requests": "x"}])
def test_resources_that_are_no_mapping_are_refused_or_empty(resources: object) -> None:
    manifest = pod({"name": "c", "resources": resources})
    if not resources:
        assert parse(manifest, DEFAULT) is None
    else:
        assert refusal(manifest).startswith("container c: ")


def test_one_bad_container_refuses_the_pod() -> None:
    assert refusal(pod(container("good", gpu=1), container("bad", gpu=-1))).startswith("container bad: ")
    assert refusal(pod(container("good", gpu=1), init=(container("bad", gpu=-1),))).startswith("container bad: ")
