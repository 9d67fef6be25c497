"""What HAMi misreads or silently ignores is refused here, in one sentence that says what is expected."""

import re
from typing import Any

import pytest

from lamina.configuration import DEFAULT, load
from lamina.dialects import parse
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
@pytest.mark.parametrize(("name", "most"), [("gpu", 1024), ("gpumem", 2147483647)])
def test_counts_and_amounts_are_integers_from_1(name: str, most: int, amount: object) -> None:
    text = refusal(asking(**{"gpumem": 1, name: amount}))
    assert text == f'container "main": nvidia.com/{name} must be an integer from 1 to {most}, got {amount}'


@pytest.mark.parametrize(("name", "most"), [("gpu", 1024), ("gpumem", 2147483647)])
def test_counts_and_amounts_have_an_upper_bound(name: str, most: int) -> None:
    assert parse(asking(**{name: most}), DEFAULT) is not None
    for amount in (most + 1, str(2**31), "4294967297", "1e30"):
        text = refusal(asking(**{name: amount}))
        assert text == f'container "main": nvidia.com/{name} must be an integer from 1 to {most}, got {amount}'


@pytest.mark.parametrize("amount", [*NOT_POSITIVE, 101, "1k", "1e3"])
def test_a_memory_percentage_is_1_to_100(amount: object) -> None:
    text = refusal(asking(gpu=1, gpumem_percentage=amount))
    assert text == f'container "main": nvidia.com/gpumem-percentage must be an integer from 1 to 100, got {amount}'


@pytest.mark.parametrize("amount", [-1, "0.5", 101, "1k"])
def test_cores_are_0_to_100(amount: object) -> None:
    assert refusal(asking(gpu=1, gpucores=amount)).endswith(f"must be an integer from 0 to 100, got {amount}")


@pytest.mark.parametrize("amount", [-1, 2, 100, "0.5"])
def test_priority_is_0_or_1(amount: object) -> None:
    text = refusal(asking(gpu=1, gpumem=1, priority=amount))
    assert text.endswith(f"must be an integer from 0 to 1, got {amount}")


@pytest.mark.parametrize(
    ("amount", "mib"),
    [("10Gi", 10240), ("5000Mi", 5000), ("10G", 9537), ("1G", 954), ("8000M", 7630), ("1T", 953675), ("0.5Gi", 512)],
)
def test_memory_with_a_unit_of_bytes_is_refused_with_what_to_write(amount: str, mib: int) -> None:
    expected = f"nvidia.com/gpumem must be an integer in MiB without a unit; for {amount}, write {mib}, got {amount}"
    assert refusal(asking(gpu=1, gpumem=amount)) == f'container "main": {expected}'


@pytest.mark.parametrize("amount", ["1Ki", "9E", "-1Gi", "0Mi"])
def test_memory_with_a_unit_of_bytes_that_is_no_memory_of_a_gpu_is_refused(amount: str) -> None:
    assert refusal(asking(gpu=1, gpumem=amount)).endswith(f"must be an integer in MiB without a unit, got {amount}")


def test_memory_in_units_of_gib_is_refused_with_what_to_write() -> None:
    assert "; for 10Gi, write 10, got 10Gi" in refusal(asking(gpu=1, gpumem="10Gi"), "hami: {memoryFactor: 1024}")


def test_the_k_of_the_api_server_is_a_thousand_mib() -> None:
    request = parse(asking(gpu=1, gpumem="10k"), DEFAULT)
    assert request is not None and request.containers[0].memory_mib == 10000


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("much", '"much"'), ("", '""'), ("10 000", '"10 000"'), (True, "true"), ([1], "[1]"), ("x" * 999, '"' + "x" * 99)],
)
def test_anything_but_a_number_is_refused(amount: object, shown: str) -> None:
    text = refusal(asking(gpu=1, gpumem=amount))
    assert text.removesuffix("...") == (
        f'container "main": nvidia.com/gpumem must be an integer from 1 to 2147483647, got {shown}'
    )


@pytest.mark.parametrize("name", ["gpu", "gpumem", "gpumem-percentage", "gpucores", "priority"])
def test_a_null_value_is_not_an_absent_one(name: str) -> None:
    spec = {"name": "c", "resources": {"limits": {"nvidia.com/gpucores": 1, f"nvidia.com/{name}": None}}}
    assert re.search(f"nvidia.com/{name} must be an integer from .*, got null$", refusal(pod(spec)))


def test_an_amount_and_a_percentage_together_are_refused() -> None:
    text = refusal(asking(gpu=1, gpumem=3000, gpumem_percentage=10))
    assert text == (
        'container "main": nvidia.com/gpumem and nvidia.com/gpumem-percentage exclude each other; remove one of them'
    )


def test_a_priority_without_a_gpu_is_refused() -> None:
    assert "nvidia.com/priority requires a GPU; request nvidia.com/gpu as well" in refusal(asking(priority=1))


def test_the_count_is_required_if_there_is_no_default() -> None:
    assert "dialects.hami.defaults.count is 0; request nvidia.com/gpu as well" in refusal(
        asking(gpumem=1), "hami: {defaultGPUNum: 0}"
    )


def test_a_privileged_container_cannot_have_a_share() -> None:
    privileged = container(gpu=1, gpumem=100) | {"securityContext": {"privileged": True}}
    assert refusal(pod(privileged)).startswith('container "main": a privileged container sees every GPU of its node')
    counting = parse(pod(container(gpu=1) | {"securityContext": {"privileged": True}}), DEFAULT)
    assert counting is not None
    assert counting.only_native_reason.startswith('container "main": a privileged container sees every GPU of its node')
    other = container("helper") | {"securityContext": {"privileged": True}}
    assert parse(pod(container(gpu=1), other), DEFAULT) is not None


def test_a_limit_that_differs_from_the_request_is_refused() -> None:
    spec = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}}
    assert refusal(pod(spec)) == 'container "c": nvidia.com/gpu must have a request equal to its limit 1, got 2'


@pytest.mark.parametrize("resources", [[], "x", 3, {"limits": [1]}, {"requests": "x"}])
def test_malformed_resources_are_refused(resources: object) -> None:
    manifest = pod({"name": "c", "resources": resources})
    if not resources:
        assert parse(manifest, DEFAULT) is None
    else:
        assert refusal(manifest).startswith('container "c": ')


def test_one_bad_container_refuses_the_pod() -> None:
    assert refusal(pod(container("good", gpu=1), container("bad", gpu=-1))).startswith('container "bad": ')
    assert refusal(pod(container("good", gpu=1), init=(container("bad", gpu=-1),))).startswith('container "bad": ')
