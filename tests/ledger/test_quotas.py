"""What a namespace may have, to the MiB and the percent."""

import pytest

from lamina.configuration import DEFAULT
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.ledger.quotas import ResourceQuotas, excess, usage

HARD = {"limits.nvidia.com/gpumem": "1000", "limits.nvidia.com/gpucores": "100"}


def quota(name: str = "q", **hard: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"hard": hard}}


def room(taken: Taken, *quotas: dict[str, object]) -> QuotaRoom | None:
    known = ResourceQuotas()
    for each in quotas or (quota(**HARD),):
        known.observe(each)
    return known.room("default", DEFAULT, lambda: taken)


def container(memory: int | None, cores: int = 0, **more: object) -> ContainerRequest:
    return ContainerRequest(container="main", memory_mib=memory, cores=cores, **{"count": 1, **more})  # type: ignore[arg-type]


def exceeds(taken: Taken, *containers: ContainerRequest) -> bool:
    request = PodRequest(dialect="hami", containers=containers).within(room(taken))
    return bool(excess([request]))


@pytest.mark.parametrize(
    ("taken", "containers", "too_much"),
    [
        (Taken(1, 400), [container(600)], False),
        (Taken(1, 400), [container(601)], True),
        (Taken(1, 0, 40), [container(1, 60)], False),
        (Taken(1, 0, 40), [container(1, 61)], True),
        (Taken(), [container(500, count=2)], False),
        (Taken(), [container(501, count=2)], True),
        (Taken(), [container(500), container(500)], False),
        (Taken(), [container(500), container(501)], True),
        (Taken(), [container(1000, init=True), container(1000)], False),
        (Taken(), [container(1001, init=True), container(1)], True),
        (Taken(), [container(500, init=True, sidecar=True), container(500, init=True), container(500)], False),
        (Taken(), [container(500, init=True, sidecar=True), container(501, init=True), container(1)], True),
        (Taken(), [container(501, init=True), container(500, init=True, sidecar=True), container(500)], False),
    ],
)
def test_a_pod_has_what_quotas_leave_and_no_more(
    taken: Taken, containers: list[ContainerRequest], too_much: bool
) -> None:
    assert exceeds(taken, *containers) is too_much


def test_the_tightest_quota_counts_and_others_of_the_namespace_only_there() -> None:
    found = room(Taken(1, 100), quota("wide", **HARD), quota("narrow", **{"limits.nvidia.com/gpumem": "300"}))
    assert found is not None and found.memory is not None and found.cores is not None
    assert (found.memory.quota, found.memory.left, found.cores.quota) == ("narrow", 200, "wide")
    assert ResourceQuotas().room("default", DEFAULT, Taken) is None


def test_the_use_that_a_quota_shows_is_that_of_its_keys() -> None:
    assert usage(quota(**HARD), Taken(2, 700, 30), DEFAULT) == {
        "limits.nvidia.com/gpumem": (700, "1000"),
        "limits.nvidia.com/gpucores": (30, "100"),
    }
    assert usage(quota(**{"requests.cpu": "1"}), Taken(2, 700, 30), DEFAULT) == {}
