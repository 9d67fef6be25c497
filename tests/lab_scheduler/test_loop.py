"""The scheduler over the lab's own API and an extender on a real port."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from lamina.lab.api.lifecycle import Deletion
from lamina.lab.api.verbs import Call
from lamina.lab.informer import objects
from lamina.lab.scheduler.run import run
from lamina.ports.kube import EVENTS, NODES, PODS
from tests.lab_controllers.clocks import settle
from tests.lab_controllers.cluster import Cluster, until
from tests.lab_scheduler.extenders import GPU, FakeExtender


def pod(name: str, *, gpu: int = 0, cpu: str = "", **spec: Any) -> dict[str, Any]:
    limits = {GPU: str(gpu)} if gpu else {}
    limits |= {"cpu": cpu} if cpu else {}
    container = {"name": "main", "image": "busybox:1", "resources": {"limits": limits}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}


class Room(Cluster):
    """A cluster with a scheduler and an extender; `capacity` is how many GPU pods the extender takes on a node."""

    def __init__(self) -> None:
        super().__init__()
        self.extender = FakeExtender(self.kube)
        self.capacity = 1000
        self.reserved: dict[str, set[str]] = {}
        self.extender.rule = self._full
        self.extender.before_bind = self._reserve

    def _full(self, pod: dict[str, Any], node: str) -> str:
        alive = {objects.uid(each) for each in self.pods()}
        free = self.capacity - len(self.reserved.get(node, set()) & alive)
        return "" if free > 0 else f"needs 1 slot; the best GPU has {free} free"

    async def _reserve(self, body: dict[str, Any]) -> str:
        refusal = self._full({}, body["Node"])
        if not refusal:
            self.reserved.setdefault(body["Node"], set()).add(body["PodUID"])
        return refusal

    def start(self, **config: Any) -> asyncio.Task[None]:
        return self.run(run(self.kube, self.extender.config(**config), self.clock))

    def node_of(self, name: str) -> str:
        return str(objects.spec(self._named(name)).get("nodeName", ""))

    def why(self, name: str) -> str:
        said = objects.condition(self._named(name), "PodScheduled") or {}
        return str(said.get("message", "")) if said.get("status") == "False" else ""

    def _named(self, name: str) -> dict[str, Any]:
        return next((each for each in self.all(PODS) if objects.name(each) == name), {})

    def bound(self) -> list[dict[str, Any]]:
        return [each for each in self.pods() if objects.spec(each).get("nodeName")]


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    made = Room()
    await made.extender.start()
    await made.add_node("n1")
    yield made
    await made.stop()
    await made.extender.stop()


async def test_a_plain_pod_is_bound_without_the_extender(room: Room) -> None:
    room.start()
    await room.create(PODS, pod("a"))
    await settle()
    assert room.node_of("a") == "n1"
    assert room.extender.calls == []
    (event,) = room.events("Scheduled")
    assert event["message"] == "Successfully assigned default/a to n1"
    assert event["source"]["component"] == "default-scheduler"


async def test_a_gpu_pod_goes_the_whole_way_through_the_extender(room: Room) -> None:
    await room.add_node("n2")
    room.extender.scores = {"n1": 1, "n2": 7}
    room.start()
    made = await room.create(PODS, pod("a", gpu=1, schedulerName="hami-scheduler"))
    await until(lambda: bool(room.events("Scheduled")))
    assert room.node_of("a") == "n2"
    assert [verb for verb, _ in room.extender.calls] == ["filter", "prioritize", "bind"]
    asked = room.extender.asked("filter")[0]
    assert asked["NodeNames"] == ["n1", "n2"]
    assert asked["Nodes"] is None
    assert asked["Pod"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert room.extender.asked("bind") == [
        {"PodName": "a", "PodNamespace": "default", "PodUID": made["metadata"]["uid"], "Node": "n2"}
    ]
    assert room.events("Scheduled")[0]["source"]["component"] == "hami-scheduler"


async def test_pods_of_other_schedulers_are_left_alone_but_counted(room: Room) -> None:
    room.start()
    await room.create(PODS, pod("strange", schedulerName="yunikorn"))
    await room.create(PODS, pod("placed", cpu="6", schedulerName="yunikorn", nodeName="n1"))
    await room.create(PODS, pod("ours", cpu="4"))
    await settle()
    assert room.node_of("strange") == ""
    assert room.events("FailedScheduling")[0]["involvedObject"]["name"] == "ours"
    assert room.why("ours") == "0/1 nodes are available: 1 Insufficient cpu."


async def test_forty_pods_share_what_there_is_without_ever_being_too_many(room: Room) -> None:
    await room.add_node("n2")
    room.capacity = 15
    room.start()
    for number in range(40):
        await room.create(PODS, pod(f"p{number}", gpu=1))
    unfit = "0/2 nodes are available: 2 needs 1 slot; the best GPU has 0 free."
    for _ in range(20):  # a filter may say yes while the slot is on its way to another pod; bind decides
        await room.clock.advance(1)
        await asyncio.sleep(0.02)
    await until(lambda: len(room.bound()) == 30)
    await until(lambda: [room.why(f"p{number}") for number in range(40)].count(unfit) == 10)
    assert {node: len(uids) for node, uids in room.reserved.items()} == {"n1": 15, "n2": 15}


async def test_assumed_pods_count_before_their_binding_is_known(room: Room) -> None:
    gate = asyncio.Event()

    async def slowly(body: dict[str, Any]) -> str:
        await gate.wait()
        return ""

    room.extender.before_bind = slowly
    room.start()
    for name in ("a", "b", "c"):
        await room.create(PODS, pod(name, gpu=1, cpu="3"))
    await until(lambda: bool(room.why("c")))
    assert room.why("c") == "0/1 nodes are available: 1 Insufficient cpu."
    assert len(room.extender.asked("bind")) == 2
    assert room.bound() == []
    gate.set()
    await until(lambda: len(room.bound()) == 2)


async def test_a_failed_binding_gives_everything_back(room: Room) -> None:
    room.extender.failing["bind"] = {"error": "GPU-1 has 0 MiB left"}
    room.start()
    await room.create(PODS, pod("gpu", gpu=1, cpu="6"))
    await until(lambda: bool(room.why("gpu")))
    assert "GPU-1 has 0 MiB left" in room.why("gpu")
    await room.create(PODS, pod("plain", cpu="6"))
    await settle()
    assert room.node_of("plain") == "n1"

    await room.delete(PODS, "plain")
    pods = room.api.catalogue.named("pods")
    await room.api.delete(pods, "default", "plain", Deletion(grace=0), Call())
    room.extender.failing.clear()
    await room.clock.advance(3)
    await until(lambda: room.node_of("gpu") == "n1")


async def test_without_the_extender_gpu_pods_wait_and_others_go_on(room: Room) -> None:
    port = room.extender.port
    await room.extender.stop()
    room.start()
    await room.create(PODS, pod("gpu", gpu=1))
    await room.create(PODS, pod("plain"))
    await until(lambda: bool(room.why("gpu")) and bool(room.node_of("plain")))
    assert f"extender http://127.0.0.1:{port} does not answer" in room.why("gpu")

    await room.extender.start(port)
    await room.clock.advance(12)
    await until(lambda: room.node_of("gpu") == "n1")


async def test_an_extender_that_hangs_holds_others_up_for_one_timeout_only(room: Room) -> None:
    never = asyncio.Event()

    async def hang(request: Any) -> Any:
        room.extender.calls.append(("filter", {}))
        await never.wait()

    room.extender._filter = hang  # type: ignore[method-assign]
    await room.extender.stop()
    await room.extender.start()
    for number in range(20):
        await room.create(PODS, pod(f"gpu{number}", gpu=1))
    await room.create(PODS, pod("plain"))
    room.start(timeout=0.2)
    await until(lambda: room.node_of("plain") == "n1" and bool(room.why("gpu19")))
    assert len(room.extender.calls) == 1
    assert "no answer within 0.2 s" in room.why("gpu0")
    never.set()


async def test_an_error_of_the_extender_fails_the_attempt_only(room: Room) -> None:
    room.extender.failing["filter"] = {"error": "the ledger is being rebuilt"}
    room.start()
    await room.create(PODS, pod("a", gpu=1))
    await until(lambda: bool(room.why("a")))
    assert "the ledger is being rebuilt" in room.why("a")
    assert objects.condition(await room.get(PODS, "a"), "PodScheduled")["reason"] == "SchedulerError"  # type: ignore[index]
    room.extender.failing.clear()
    await room.clock.advance(2)
    await until(lambda: room.node_of("a") == "n1")


async def test_retries_slow_down_and_are_one_event(room: Room) -> None:
    room.capacity = 0
    room.start()
    await room.create(PODS, pod("a", gpu=1))
    await until(lambda: bool(room.why("a")))
    tried = []
    for second in range(1, 60):
        before = len(room.extender.asked("filter"))
        await room.clock.advance(1)
        await asyncio.sleep(0.01)
        if len(room.extender.asked("filter")) > before:
            tried.append(second)
    assert 6 <= len(tried) <= 9
    gaps = [after - before for before, after in pairwise(tried)]
    assert gaps[-1] == pytest.approx(10, abs=1)
    (event,) = [each for each in room.all(EVENTS) if each["reason"] == "FailedScheduling"]
    assert event["count"] > 1
    assert event["message"] == "0/1 nodes are available: 1 needs 1 slot; the best GPU has 0 free."
    condition = objects.condition(await room.get(PODS, "a"), "PodScheduled")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")


@pytest.mark.parametrize("change", ["deleted", "finished", "node", "resized"])
async def test_what_may_help_is_tried_at_once(room: Room, change: str) -> None:
    room.start()
    await room.create(PODS, pod("big", cpu="8"))
    await settle()
    await room.create(PODS, pod("waits", cpu="4"))
    await settle()
    assert room.why("waits") == "0/1 nodes are available: 1 Insufficient cpu."
    if change == "deleted":
        pods = room.api.catalogue.named("pods")
        await room.api.delete(pods, "default", "big", Deletion(grace=0), Call())
    elif change == "finished":
        await room.change(PODS, "big", {"status": {"phase": "Succeeded"}}, "status")
    elif change == "node":
        await room.add_node("n2")
    else:
        await room.change(NODES, "n1", {"status": {"allocatable": {"cpu": "16"}}}, "status")
    await settle()
    assert room.node_of("waits") in ("n1", "n2")


async def test_higher_priority_and_then_age_decide_who_is_next(room: Room) -> None:
    room.capacity = 3
    for name, priority in (("a", 0), ("b", 0), ("c", 10), ("d", 0), ("e", 5)):
        await room.create(PODS, pod(name, gpu=1, priority=priority))
    room.start()
    await until(lambda: len(room.extender.asked("filter")) >= 5)
    order = [body["Pod"]["metadata"]["name"] for body in room.extender.asked("filter")]
    assert order[:5] == ["c", "e", "a", "b", "d"]


async def test_a_pod_deleted_while_it_is_thought_about_takes_nothing(room: Room) -> None:
    gate = asyncio.Event()
    entered = asyncio.Event()
    decide = room.extender._filter

    async def slowly(request: Any) -> Any:
        entered.set()
        await gate.wait()
        return await decide(request)

    room.extender._filter = slowly  # type: ignore[method-assign]
    await room.extender.stop()
    await room.extender.start()
    room.start()
    await room.create(PODS, pod("a", gpu=1, cpu="8"))
    await entered.wait()
    await room.delete(PODS, "a")
    gate.set()
    await room.create(PODS, pod("b", cpu="8"))
    await until(lambda: room.node_of("b") == "n1")
    assert room.extender.asked("bind") == []


async def test_no_node_at_all_is_said_so(room: Room) -> None:
    await room.delete(NODES, "n1")
    room.start()
    await room.create(PODS, pod("a"))
    await settle()
    assert room.why("a") == "no nodes available to schedule pods"
