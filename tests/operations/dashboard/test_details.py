"""What is sent of one pod or GPU: events, commands and history, and to each viewer what it may list."""

from typing import Any

import pytest

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.details import MAX_EVENTS, MAX_PODS, DetailReader
from lamina.operations.dashboard.viewers import ViewerAccess
from lamina.ports.clock import FakeClock
from lamina.ports.kube import EVENTS, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.operations.dashboard.servers import details_of
from tests.operations.dashboard.uses import use_of
from tests.operations.dashboard.viewers import two_teams

OF_A = ViewerAccess(nodes=False, everywhere=False, namespaces=frozenset({"team-a"}))
OF_B = ViewerAccess(nodes=True, everywhere=False, namespaces=frozenset({"team-b"}))


async def event(kube: FakeKube, namespace: str, name: str, involved: Object, **fields: Any) -> None:
    body = {"metadata": {"name": name, "namespace": namespace}, "involvedObject": involved, "reason": name} | fields
    await kube.create(EVENTS, body, namespace=namespace)


@pytest.fixture
async def kube() -> FakeKube:
    made = FakeKube()
    at = "2026-11-30T10:00:00Z"
    await event(made, "team-a", "Started", {"uid": "a"}, message="it runs", type="Normal", lastTimestamp=at, count=3)
    await event(made, "team-b", "Other", {"uid": "b"}, message="secret of b")
    await event(made, "default", "Rebooted", {"kind": "Node", "name": "n"}, message="secret of n")
    return made


def reader(kube: Any) -> DetailReader:
    board, clock = Board(), FakeClock()
    board.post(two_teams(), 1.0)
    board.use(use_of("team-a", "a-pod", "main", used_mib=1), "", 2.0)
    return details_of(board, clock, kube)


async def nothing(namespace: str) -> bool:
    return False


async def own(namespace: str) -> bool:
    return namespace == "team-a"


async def test_events_of_the_pod_and_its_node(kube: FakeKube) -> None:
    found = await reader(kube).pod("a")
    assert found is not None and found.problem == ""
    first, second = found.events
    assert (first.about, first.at, first.type, first.message, first.count) == (
        "pod",
        1796032800,
        "Normal",
        "it runs",
        3,
    )
    assert (second.about, second.reason, second.at) == ("node", "Rebooted", None)
    assert found.commands[0].text == "lamina why -n team-a a-pod" and set(found.history.shares) == {"main GPU-n-0"}


async def test_what_does_not_exist_and_what_may_not_be_listed_are_the_same(kube: FakeKube) -> None:
    details = reader(kube)
    assert await details.pod("b", OF_A) is None is await details.pod("nothing", OF_A)
    assert await details.gpu("GPU-n-0", OF_A) is None is await details.gpu("nothing")
    assert set(details.use(["a", "b", "nothing"], OF_A)) == {"a"} and set(details.use(["a", "b"])) == {"a", "b"}
    assert len(details.use(["a"] * 3 * MAX_PODS)) == 1


async def test_events_are_for_those_who_may_list_them(kube: FakeKube) -> None:
    found = await reader(kube).pod("a", OF_A, nothing)
    assert found is not None and found.events == ()
    assert found.problem == "you may not list events of the pod (namespace team-a)"
    own_events = await reader(kube).pod("a", OF_A, own)
    assert own_events is not None and [each.about for each in own_events.events] == ["pod"]
    gpu = await reader(kube).gpu("GPU-n-0", OF_B, own)
    assert gpu is not None and gpu.events == () and gpu.problem.startswith("you may not list events of the node")


async def test_who_held_a_gpu_has_no_names_of_others(kube: FakeKube) -> None:
    found = await reader(kube).gpu("GPU-n-0", OF_B, nothing)
    assert found is not None
    assert [(each.pod, each.name, each.namespace) for each in found.history.holders] == [
        ("", "other namespaces", ""),
        ("b", "team-b/b-pod", "team-b"),
    ]


async def test_many_and_odd_events_are_bounded(kube: FakeKube) -> None:
    for number in range(MAX_EVENTS + 9):
        await event(kube, "team-a", f"e{number}", {"uid": "a"}, message="x" * 9999, lastTimestamp="never", count=None)
    found = await reader(kube).pod("a")
    assert found is not None and len(found.events) == MAX_EVENTS
    assert max(len(each.message) for each in found.events) == 1024


class Down(FakeKube):
    async def list(self, *_: Any, **__: Any) -> Any:
        raise Unreachable("no route")


async def test_events_that_cannot_be_read_are_a_sentence() -> None:
    found = await reader(Down()).pod("a")
    assert found is not None and "events of the pod cannot be read: no route" in found.problem and found.commands
