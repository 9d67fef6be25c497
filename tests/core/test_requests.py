import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.grants import ComputePolicy, ContainerGrant, Grant, Share, grant_name
from lamina.core.objects import read_grant, write_spec
from lamina.core.quantities import parse_memory_mib
from lamina.core.requests import ContainerRequest
from lamina.errors import BadInput


def test_an_amount_is_the_same_on_every_gpu_and_a_percentage_is_not() -> None:
    assert ContainerRequest(container="c", count=1, memory_mib=3000).memory_on(32768) == 3000
    assert ContainerRequest(container="c", count=1, memory_percent=50).memory_on(32768) == 16384
    assert ContainerRequest(container="c", count=1, memory_percent=33).memory_on(32768) == 10813


@given(st.integers(1, 100), st.integers(1, 10**7))
def test_percentages_never_add_up_to_more_than_the_gpu(percent: int, capacity: int) -> None:
    memory = ContainerRequest(container="c", count=1, memory_percent=percent).memory_on(capacity)
    assert memory >= 1
    assert memory * (100 // percent) <= capacity or memory == 1


def test_a_request_without_memory_is_an_error_of_the_program() -> None:
    with pytest.raises(ValueError, match="neither"):
        ContainerRequest(container="c", count=1).memory_on(1)


@pytest.mark.parametrize(
    ("exclusive", "percent", "whole"), [(True, 100, True), (True, 50, False), (False, 100, False), (True, None, False)]
)
def test_a_whole_gpu_is_all_the_memory_and_exclusive(exclusive: bool, percent: int | None, whole: bool) -> None:
    request = ContainerRequest(
        container="c", count=1, memory_percent=percent, memory_mib=None if percent else 10, exclusive=exclusive
    )
    assert request.whole is whole


@pytest.mark.parametrize(("exclusive", "counted"), [(True, 16384), (False, 32768)])
def test_a_whole_gpu_counts_with_the_memory_it_has(exclusive: bool, counted: int) -> None:
    """Memory may be granted twice over; a whole GPU is not more than one."""
    request = ContainerRequest(container="c", count=1, memory_percent=100, exclusive=exclusive)
    assert request.counted_on(16384, 2 * 16384) == counted
    assert request.counted_on(16384, 16000) == 16000


def test_a_grant_travels_with_camel_case_names() -> None:
    share = Share(gpu="GPU-a", memory_mib=10, cores=5, exclusive=True, compute_policy=ComputePolicy.CAP)
    grant = Grant(
        pod="p", pod_uid="u", node="n", dialect="hami", containers=(ContainerGrant(name="c", shares=(share,)),)
    )
    wire = write_spec(grant)
    assert wire["podUID"] == "u"
    assert wire["containers"][0]["shares"][0] == {
        "gpu": "GPU-a",
        "memoryMiB": 10,
        "physicalMiB": 0,
        "cores": 5,
        "mostCores": 0,
        "mostMemoryMiB": 0,
        "mode": "quota",
        "exclusive": True,
        "computePolicy": "cap",
        "mostSharers": None,
        "oneIsolation": False,
        "mig": None,
    }
    assert read_grant({"metadata": {"name": "g"}, "spec": wire}) == grant


def test_a_grants_name_keeps_pods_of_one_name_apart_and_is_not_too_long() -> None:
    names = {grant_name("p" * 253, uid) for uid in ("11111111-a", "22222222-b")}
    assert len(names) == 2
    assert all(len(name) <= 253 for name in names)
    assert grant_name("p" * 239 + ".q" * 7, "11111111-a") == "p" * 239 + "-11111111", "a part may not end with a point"


@pytest.mark.parametrize(("text", "mib"), [("5120", 5120), ("5120Mi", 5120), ("5Gi", 5120), ("1Ti", 1048576)])
def test_memory_for_one_process_is_read_in_mib(text: str, mib: int) -> None:
    assert parse_memory_mib(text, where="--memory") == mib


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5Gi", "5G", "5GiB", "five", "1e3"])
def test_memory_that_could_be_misread_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--memory"):
        parse_memory_mib(text, where="--memory")
