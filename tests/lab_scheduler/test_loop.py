"""The scheduler over the lab's own API and an extender on a real port."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from lamina.ports.kube import EVENTS, NODES, PODS
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.verbs import Call
from lamina_lab.kubernetes import objects
from tests.lab_scheduler.cluster import SchedulerCluster, pod
from tests.waiting import until
from tests.worlds.clocks import settle


@pytest.fixture
async def cluster() -> AsyncIterator[SchedulerCluster]:
    made = SchedulerCluster()
    await made.extender.start()
    await made.add_node("n1")
    yield made
    await made.stop()
    await made.extender.stop()


async def test_a_plain_pod_is_bound_without_the_extender(cluster: SchedulerCluster) -> None:
    cluster.start()
    await cluster.create(PODS, pod("a"))
    await settle()
    assert cluster.node_of("a") == "n1"
    assert cluster.extender.calls == []
    (event,) = cluster.events("Scheduled")
    assert event["message"] == "Successfully assigned default/a to n1"
    assert event["source"]["component"] == "default-scheduler"


async def test_a_gpu_pod_passes_through_the_extender(cluster: SchedulerCluster) -> None:
    await cluster.add_node("n2")
    cluster.extender.scores = {"n1": 1, "n2": 7}
    cluster.start()
    made = await cluster.create(PODS, pod("a", gpu=1, schedulerName="hami-scheduler"))
    await until(lambda: bool(cluster.events("Scheduled")))
    assert cluster.node_of("a") == "n2"
    assert [verb for verb, _ in cluster.extender.calls] == ["filter", "prioritize", "bind"]
    asked = cluster.extender.asked("filter")[0]
    assert asked["NodeNames"] == ["n1", "n2"]
    assert asked["Nodes"] is None
    assert asked["Pod"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert cluster.extender.asked("bind") == [
        {"PodName": "a", "PodNamespace": "default", "PodUID": made["metadata"]["uid"], "Node": "n2"}
    ]
    assert cluster.events("Scheduled")[0]["source"]["component"] == "hami-scheduler"


async def test_pods_of_other_schedulers_are_left_alone_but_counted(cluster: SchedulerCluster) -> None:
    cluster.start()
    await cluster.create(PODS, pod("strange", schedulerName="yunikorn"))
    await cluster.create(PODS, pod("placed", cpu="6", schedulerName="yunikorn", nodeName="n1"))
    await cluster.create(PODS, pod("ours", cpu="4"))
    await settle()
    assert cluster.node_of("strange") == ""
    assert cluster.events("FailedScheduling")[0]["involvedObject"]["name"] == "ours"
    assert cluster.why("ours") == "0/1 nodes are available: 1 Insufficient cpu."


async def test_forty_pods_share_what_there_is_without_ever_being_too_many(cluster: SchedulerCluster) -> None:
    await cluster.add_node("n2")
    cluster.capacity = 15
    cluster.start()
    for number in range(40):
        await cluster.create(PODS, pod(f"p{number}", gpu=1))
    unfit = "0/2 nodes are available: 2 needs 1 slot; the best GPU has 0 free."
    for _ in range(20):  # a filter may say yes while the slot is on its way to another pod; bind decides
        await cluster.clock.advance(1)
        await settle()
    await until(lambda: len(cluster.bound()) == 30)
    await until(lambda: [cluster.why(f"p{number}") for number in range(40)].count(unfit) == 10)
    assert {node: len(uids) for node, uids in cluster.reserved.items()} == {"n1": 15, "n2": 15}


async def test_assumed_pods_count_before_their_binding_is_known(cluster: SchedulerCluster) -> None:
    gate = asyncio.Event()

    async def slowly(body: dict[str, Any]) -> str:
        await gate.wait()
        return ""

    cluster.extender.before_bind = slowly
    cluster.start()
    for name in ("a", "b", "c"):
        await cluster.create(PODS, pod(name, gpu=1, cpu="3"))
    await until(lambda: bool(cluster.why("c")))
    assert cluster.why("c") == "0/1 nodes are available: 1 Insufficient cpu."
    await until(lambda: len(cluster.extender.asked("bind")) == 2)
    assert cluster.bound() == []
    gate.set()
    await until(lambda: len(cluster.bound()) == 2)


async def test_a_failed_binding_gives_everything_back(cluster: SchedulerCluster) -> None:
    cluster.extender.failing["bind"] = {"error": "GPU-1 has 0 MiB left"}
    cluster.start()
    await cluster.create(PODS, pod("gpu", gpu=1, cpu="6"))
    await until(lambda: bool(cluster.why("gpu")))
    assert cluster.why("gpu") == "GPU-1 has 0 MiB left", "the reason alone, as in kube-scheduler"
    await cluster.create(PODS, pod("plain", cpu="6"))
    await until(lambda: cluster.node_of("plain") == "n1")

    await cluster.delete(PODS, "plain")
    pods = cluster.api.catalog.named("pods")
    await cluster.api.delete(pods, "default", "plain", Deletion(grace=0), Call())
    cluster.extender.failing.clear()
    await until(lambda: cluster.node_of("gpu") == "n1", clock=cluster.clock, step_s=1)


async def test_pods_whose_bindings_fail_wait_out_their_back_off(cluster: SchedulerCluster) -> None:
    """Each failure gives back what the pod would have held, which is no reason to try the others at once."""
    cluster.extender.failing["bind"] = {"error": "no"}
    cluster.start()
    for name in ("a", "b", "c"):
        await cluster.create(PODS, pod(name, gpu=1))
    await until(lambda: all(cluster.why(name) for name in ("a", "b", "c")))
    await cluster.create(PODS, pod("plain"))
    await until(lambda: bool(cluster.node_of("plain")))
    assert len([verb for verb, _ in cluster.extender.calls if verb == "bind"]) == 3


async def test_without_the_extender_gpu_pods_wait_and_others_go_on(cluster: SchedulerCluster) -> None:
    port = cluster.extender.port
    await cluster.extender.stop()
    cluster.start()
    await cluster.create(PODS, pod("gpu", gpu=1))
    await cluster.create(PODS, pod("plain"))
    await until(lambda: bool(cluster.why("gpu")) and bool(cluster.node_of("plain")))
    assert f"extender http://127.0.0.1:{port} is not responding" in cluster.why("gpu")

    await cluster.extender.start(port)
    await until(lambda: cluster.node_of("gpu") == "n1", clock=cluster.clock, step_s=1)


async def test_an_extender_that_hangs_holds_others_up_for_one_timeout_only(cluster: SchedulerCluster) -> None:
    never = asyncio.Event()

    async def hang(request: Any) -> Any:
        cluster.extender.calls.append(("filter", {}))
        await never.wait()

    cluster.extender._filter = hang  # type: ignore[method-assign]
    await cluster.extender.stop()
    await cluster.extender.start()
    for number in range(20):
        await cluster.create(PODS, pod(f"gpu{number}", gpu=1))
    await cluster.create(PODS, pod("plain"))
    cluster.start(timeout=0.2)
    await until(lambda: cluster.node_of("plain") == "n1" and bool(cluster.why("gpu19")))
    assert len(cluster.extender.calls) == 1
    assert "no answer within 0.2 s" in cluster.why("gpu0")
    never.set()


async def test_an_error_of_the_extender_fails_the_attempt_only(cluster: SchedulerCluster) -> None:
    cluster.extender.failing["filter"] = {"error": "the ledger is being rebuilt"}
    cluster.start()
    await cluster.create(PODS, pod("a", gpu=1))
    await until(lambda: bool(cluster.why("a")))
    assert "the ledger is being rebuilt" in cluster.why("a")
    assert objects.condition(await cluster.get(PODS, "a"), "PodScheduled")["reason"] == "SchedulerError"  # type: ignore[index]
    cluster.extender.failing.clear()
    await until(lambda: cluster.node_of("a") == "n1", clock=cluster.clock, step_s=1)


async def test_retries_slow_down_and_are_one_event(cluster: SchedulerCluster) -> None:
    cluster.capacity = 0
    cluster.start()
    await cluster.create(PODS, pod("a", gpu=1))
    await until(lambda: bool(cluster.why("a")))
    tried = []
    for second in range(1, 60):
        before = len(cluster.extender.asked("filter"))
        await cluster.clock.advance(1)
        await settle()
        if len(cluster.extender.asked("filter")) > before:
            tried.append(second)
    assert 6 <= len(tried) <= 9
    gaps = [after - before for before, after in pairwise(tried)]
    assert gaps[-1] == pytest.approx(10, abs=1)
    (event,) = [each for each in cluster.all(EVENTS) if each["reason"] == "FailedScheduling"]
    assert event["count"] > 1
    assert event["message"] == "0/1 nodes are available: 1 needs 1 slot; the best GPU has 0 free."
    condition = objects.condition(await cluster.get(PODS, "a"), "PodScheduled")
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")


@pytest.mark.parametrize("change", ["deleted", "finished", "node", "resized"])
async def test_helpful_changes_cause_an_immediate_attempt(cluster: SchedulerCluster, change: str) -> None:
    cluster.start()
    await cluster.create(PODS, pod("big", cpu="8"))
    await settle()
    await cluster.create(PODS, pod("waits", cpu="4"))
    await settle()
    assert cluster.why("waits") == "0/1 nodes are available: 1 Insufficient cpu."
    if change == "deleted":
        pods = cluster.api.catalog.named("pods")
        await cluster.api.delete(pods, "default", "big", Deletion(grace=0), Call())
    elif change == "finished":
        await cluster.change(PODS, "big", {"status": {"phase": "Succeeded"}}, "status")
    elif change == "node":
        await cluster.add_node("n2")
    else:
        await cluster.change(NODES, "n1", {"status": {"allocatable": {"cpu": "16"}}}, "status")
    await settle()
    assert cluster.node_of("waits") in ("n1", "n2")


async def test_higher_priority_and_then_age_decide_who_is_next(cluster: SchedulerCluster) -> None:
    cluster.capacity = 3
    for name, priority in (("a", 0), ("b", 0), ("c", 10), ("d", 0), ("e", 5)):
        await cluster.create(PODS, pod(name, gpu=1, priority=priority))
    cluster.start()
    await until(lambda: len(cluster.extender.asked("filter")) >= 5)
    order = [body["Pod"]["metadata"]["name"] for body in cluster.extender.asked("filter")]
    assert order[:5] == ["c", "e", "a", "b", "d"]


async def test_a_pod_deleted_while_it_is_thought_about_takes_nothing(cluster: SchedulerCluster) -> None:
    gate = asyncio.Event()
    entered = asyncio.Event()
    decide = cluster.extender._filter

    async def slowly(request: Any) -> Any:
        entered.set()
        await gate.wait()
        return await decide(request)

    cluster.extender._filter = slowly  # type: ignore[method-assign]
    await cluster.extender.stop()
    await cluster.extender.start()
    cluster.start()
    await cluster.create(PODS, pod("a", gpu=1, cpu="8"))
    await entered.wait()
    await cluster.delete(PODS, "a")
    gate.set()
    await cluster.create(PODS, pod("b", cpu="8"))
    await until(lambda: cluster.node_of("b") == "n1")
    assert cluster.extender.asked("bind") == []


async def test_a_cluster_without_nodes_is_reported(cluster: SchedulerCluster) -> None:
    await cluster.delete(NODES, "n1")
    cluster.start()
    await cluster.create(PODS, pod("a"))
    await settle()
    assert cluster.why("a") == "no nodes available to schedule pods"
