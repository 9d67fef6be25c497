"""Requests for other sizes: how they are written, and which a share can have."""

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, Grant, Share
from lamina.core.requests import MAX_GPU_CONTAINERS
from lamina.errors import BadInput
from lamina.ledger.resize_requests import MAX_TEXT, SizeRequest, read_requests, wanted

SHARE = Share(gpu="GPU-0", memory_mib=1000, cores=20, compute_policy=ComputePolicy.CAP)


def grant(*shares: Share, **more: object) -> Grant:
    containers = (ContainerGrant(name="main", shares=shares, **more),)  # type: ignore[arg-type]
    return Grant(node="n", pod="p", dialect="hami", pod_uid="u", containers=containers)


@pytest.mark.parametrize(
    ("written", "other_size"),
    [
        ("main=8000", SizeRequest(8000, None)),
        ("main=8000,30", SizeRequest(8000, 30)),
        ("main=,1", SizeRequest(None, 1)),
        ("main=1,100", SizeRequest(1, 100)),
        ("main=0000000001", SizeRequest(1, None)),
        ("main=1,".ljust(MAX_TEXT - 2) + "1", SizeRequest(1, 1)),
    ],
)
def test_a_request_is_mib_and_percent(written: str, other_size: SizeRequest) -> None:
    assert read_requests(written) == {"main": other_size}


@pytest.mark.parametrize(
    "written",
    [
        "",
        "main",
        "=1",
        "main=",
        "main=,",
        "main=0",
        "main=1,0",
        "main=1,101",
        "main=-1",
        "main=1.5",
        "main=1;main=2",
        "main=00000000001",
    ],
)
def test_what_is_no_request_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match="must be container=MiB,percent"):
        read_requests(written)


def test_as_many_containers_as_a_pod_can_have_are_named() -> None:
    most = ";".join(f"c{number}=1" for number in range(MAX_GPU_CONTAINERS))
    assert len(most) < MAX_TEXT and len(read_requests(most)) == MAX_GPU_CONTAINERS
    for written in (f"{most};more=1", "main=1,".ljust(MAX_TEXT - 1) + "1"):
        with pytest.raises(BadInput, match="may name at most"):
            read_requests(written)


LENT = {"most_memory_mib": 2000, "most_cores": 50}


@pytest.mark.parametrize(
    ("share", "other_size", "refused"),
    [
        ({}, (4000, 40), ""),
        (LENT, (2000, 50), ""),
        (LENT, (2001, 50), "its limit of memory is 2000 MiB"),
        (LENT, (2000, 51), "its limit of compute is 50 percent"),
        ({"compute_policy": ComputePolicy.NONE}, (2000, 20), ""),
        ({"compute_policy": ComputePolicy.NONE}, (1000, 21), "only its memory can be resized"),
        ({"mode": Mode.MPS}, (2000, 20), "create the pod again"),
        ({"exclusive": True}, (2000, 20), "only a share of a GPU"),
        ({"physical_mib": 500}, (2000, 20), "granted more than once"),
    ],
)
def test_a_share_has_a_size_within_its_limits(
    share: dict[str, object], other_size: tuple[int, int], refused: str
) -> None:
    held, requests = grant(structs.replace(SHARE, **share)), {"main": SizeRequest(*other_size)}
    if refused:
        with pytest.raises(BadInput, match=refused):
            wanted(held, requests)
        return
    (size,) = wanted(held, requests).values()
    assert (size.memory_mib, size.cores, size.generation) == (*other_size, 1)


def test_what_stays_as_it_is_needs_no_new_size() -> None:
    assert wanted(grant(SHARE), {"main": SizeRequest(1000, None)}) == {}


def test_containers_that_cannot_be_resized_are_named() -> None:
    other = Share(gpu="GPU-1", memory_mib=500, cores=20, compute_policy=ComputePolicy.CAP)
    for held, sentence in (
        (grant(SHARE, init=True), "is an init container"),
        (grant(SHARE, other), "has different shares"),
    ):
        with pytest.raises(BadInput, match=sentence):
            wanted(held, {"main": SizeRequest(2000, 20)})
    with pytest.raises(BadInput, match="container 'other' has no share"):
        wanted(grant(SHARE), {"other": SizeRequest(1, 1)})
