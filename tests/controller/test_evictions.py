"""The controller makes room for a pod about which kube-scheduler up to 1.36 does not ask: it lacks GPU memory alone.

The scheduler here filters, and evicts for what it counts itself alone, so it never asks to preempt.
"""

from pathlib import Path
from typing import Any

import pytest

from lamina.controller.eviction.preemption import PAUSE_S, SETTLED_S
from lamina.ledger.holds import Why
from lamina.ledger.pod_stages import PodState, Stage
from lamina.ports.clock import FakeClock
from lamina.ports.kube import DISRUPTION_BUDGETS, PODS, NotFound, Object, Refused
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import running
from tests.controller.preempting import MIB, Preempting
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus


@pytest.fixture
async def cluster() -> Preempting:
    made = Preempting("node-0", "node-1")
    await made.fill()
    return made


async def test_one_pod_is_evicted_and_the_other_one_gets_its_room(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10)
    await cluster.refused(high)
    assert len(await cluster.evicted()) == 1
    node = await cluster.nominated_node("high")
    await cluster.report()
    assert cluster.filter(high).fitting == [node]
    assert await cluster.bench.bind(high, node) == ""
    assert "Preempted" in await cluster.reasons() and not cluster.nominated.holds(high["metadata"]["uid"])


async def test_no_more_than_needed_goes_and_all_of_it_from_one_node(cluster: Preempting) -> None:
    await cluster.refused(await cluster.pod("high", priority=10, gpumem=MIB))
    assert await cluster.evicted() in ({"low-0", "low-2"}, {"low-1", "low-3"})


@pytest.mark.parametrize(
    "fields", [{"priority": 0}, {"priority": 10, "preemptionPolicy": "Never"}, {"priority": 10, "gpumem": 2 * MIB}]
)
async def test_no_pod_is_evicted_where_it_is_not_allowed_or_does_not_help(
    cluster: Preempting, fields: dict[str, Any]
) -> None:
    await cluster.refused(await cluster.pod("high", **fields))
    assert await cluster.evicted() == set()


async def test_a_pod_waits_before_others_are_evicted_and_only_the_leader_evicts(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10)
    await cluster.refused(high, after_s=SETTLED_S / 2)
    assert await cluster.evicted() == set()
    cluster.bench.leads = False
    await cluster.refused(high)
    assert await cluster.evicted() == set()


@pytest.mark.parametrize("room", [True, False])
async def test_a_pod_for_which_the_scheduler_makes_room_is_left_to_it(cluster: Preempting, room: bool) -> None:
    """What the status names counts only where room comes: a leader may have died before it evicted."""
    high = await cluster.pod("high", priority=10)
    body = {"status": {"nominatedNodeName": "node-0"}}
    await cluster.bench.kube.patch(PODS, "high", body, namespace="default", subresource="status")
    if room:
        low = await cluster.bench.kube.get(PODS, "low-0", namespace="default")
        cluster.leaving.add(low["metadata"]["uid"])
    await cluster.refused(high)
    assert len(await cluster.evicted()) == (0 if room else 1)


async def test_a_pod_that_is_gone_or_bound_needs_no_room(cluster: Preempting) -> None:
    gone, bound = await cluster.pod("gone", priority=10), await cluster.pod("bound", priority=10)
    assert cluster.filter(gone).fitting == cluster.filter(bound).fitting == []
    await cluster.bench.kube.delete(PODS, "gone", namespace="default")
    cluster.bench.ledger.observe_pod(bound["metadata"]["uid"], PodState(Stage.BOUND, "node-9"), 0.0)
    cluster.bench.clock.time += SETTLED_S
    for _ in range(2):
        await cluster.preemption.reconcile()
    assert await cluster.evicted() == set()


async def test_room_that_comes_anyway_makes_evictions_useless(cluster: Preempting) -> None:
    """A pod is gone, and no watch has reported it."""
    await cluster.bench.kube.delete(PODS, "low-0", namespace="default")
    await cluster.refused(await cluster.pod("high", priority=10))
    assert await cluster.evicted() == {"low-0"} and await cluster.nominated_node("high") == ""


async def protect(cluster: Preempting, *names: str) -> None:
    for name in names:
        budget = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": name}}},
            "status": {"disruptionsAllowed": 0},
        }
        await cluster.bench.kube.create(DISRUPTION_BUDGETS, budget)


async def test_pods_with_a_budget_stay(cluster: Preempting) -> None:
    await protect(cluster, "low-0", "low-1", "low-2")
    await cluster.refused(await cluster.pod("high", priority=10))
    assert await cluster.evicted() == {"low-3"}
    await protect(cluster, "low-3")
    await cluster.refused(await cluster.pod("higher", priority=11, gpumem=MIB))
    assert await cluster.evicted() == {"low-3"}


async def test_a_refused_eviction_ends_the_plan_for_a_while(cluster: Preempting) -> None:
    evictions = 0

    def refuse_the_second(resource: object, name: str) -> Exception | None:
        nonlocal evictions
        evictions += 1
        return NotFound("it is gone") if evictions == 1 else Refused("not now") if evictions == 2 else None

    cluster.bench.kube.failing["evict"] = refuse_the_second  # type: ignore[attr-defined]
    high = await cluster.pod("high", priority=10, gpumem=MIB)
    await cluster.refused(high)
    assert evictions == 2 and await cluster.evicted() == set()
    assert await cluster.nominated_node("high") == "" and "PreemptionEnded" in await cluster.reasons()
    await cluster.refused(high)
    assert await cluster.evicted() == set()
    await cluster.refused(high, after_s=PAUSE_S)
    assert len(await cluster.evicted()) == 2


async def test_room_is_held_until_all_victims_are_gone(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10, gpumem=MIB)
    await cluster.refused(high)
    node = await cluster.nominated_node("high")
    await cluster.report()
    equal, higher = await cluster.pod("equal", priority=10), await cluster.pod("higher", priority=11)
    answer = cluster.filter(equal)
    assert answer.fitting == [] and "held for pod default/high" in answer.failed[node] and answer.summary
    assert cluster.filter(higher).fitting == [node] == cluster.filter(high).fitting
    cluster.bench.clock.time += 30 + 61
    assert cluster.filter(equal).fitting == [node]


async def test_a_pod_whose_room_was_taken_is_tried_again_after_a_while(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10)
    await cluster.refused(high)
    node = await cluster.nominated_node("high")
    await cluster.report()
    assert await cluster.bench.bind(await cluster.pod("higher", priority=11), node) == ""
    await cluster.refused(high)
    assert len(await cluster.evicted()) == 1
    await cluster.refused(high, after_s=91)
    await cluster.refused(high)
    assert len(await cluster.evicted()) == 2


async def test_who_fits_next_to_the_nominated_pod_may_come(cluster: Preempting) -> None:
    await cluster.refused(await cluster.pod("high", priority=10, gpumem=MIB - 4096))
    node = await cluster.nominated_node("high")
    await cluster.report()
    assert cluster.filter(await cluster.pod("small", gpumem=4096)).fitting == [node]
    assert cluster.filter(await cluster.pod("large", gpumem=4097)).fitting == []


async def nominated_by_status(cluster: Preempting, name: str, node: str, **fields: Any) -> Object:
    """A pod of which another leader, or kube-scheduler, wrote the node; the watch reports it to this replica."""
    await cluster.pod(name, **fields)
    body = {"status": {"nominatedNodeName": node}}
    pod = await cluster.bench.kube.patch(PODS, name, body, namespace="default", subresource="status")
    cluster.bench.context.pending.observe(cluster.bench.parse(pod))
    return pod


async def delete(cluster: Preempting, *names: str, gone: bool) -> None:
    """The watch reports that the pods are being deleted, or that they are gone."""
    for name in names:
        pod = await cluster.bench.kube.get(PODS, name, namespace="default")
        uid = pod["metadata"]["uid"]
        if gone:
            await cluster.bench.kube.delete(PODS, name, namespace="default")
            cluster.leaving.discard(uid)
            cluster.bench.ledger.remove_pod(uid, cluster.bench.context.now())
        else:
            cluster.leaving.add(uid)


async def test_another_leader_holds_the_room_that_the_status_names(cluster: Preempting) -> None:
    await delete(cluster, "low-0", "low-2", gone=False)
    high = await nominated_by_status(cluster, "high", "node-0", priority=10, gpumem=MIB)
    await delete(cluster, "low-0", gone=True)
    equal, higher = await cluster.pod("equal", priority=10), await cluster.pod("higher", priority=11)
    answer = cluster.filter(equal)
    assert answer.fitting == [] and "held for pod default/high" in answer.failed["node-0"]
    assert cluster.filter(higher).fitting == ["node-0"]
    await delete(cluster, "low-2", gone=True)
    assert cluster.filter(equal).fitting == [] and cluster.filter(high).fitting == ["node-0"]
    assert await cluster.bench.bind(high, "node-0") == ""
    assert cluster.filter(equal).fitting == []


@pytest.mark.parametrize("status", [{"nominatedNodeName": None}, {"nominatedNodeName": "node-1"}])
async def test_room_is_held_only_as_long_as_the_status_names_it(cluster: Preempting, status: Object) -> None:
    await delete(cluster, "low-0", gone=True)
    await nominated_by_status(cluster, "high", "node-0", priority=10)
    equal = await cluster.pod("equal", priority=10)
    assert cluster.filter(equal).fitting == []
    pod = await cluster.bench.kube.patch(PODS, "high", {"status": status}, namespace="default", subresource="status")
    cluster.bench.context.pending.observe(cluster.bench.parse(pod))
    assert cluster.filter(equal).fitting == ["node-0"]


async def test_room_that_a_nominated_pod_cannot_get_is_free(cluster: Preempting) -> None:
    """Its room was taken, or the victims stay: holding what is left would help no pod."""
    await delete(cluster, "low-0", gone=True)
    await nominated_by_status(cluster, "high", "node-0", priority=10, gpumem=MIB)
    assert cluster.filter(await cluster.pod("low")).fitting == ["node-0"]


async def test_room_that_this_leader_gave_back_is_not_held_by_what_the_status_still_says(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10)
    await cluster.refused(high)
    node = await cluster.nominated_node("high")
    await cluster.report()
    written = await cluster.bench.kube.get(PODS, "high", namespace="default")
    cluster.bench.context.pending.observe(cluster.bench.parse(written))
    equal = await cluster.pod("equal", priority=10)
    assert cluster.filter(equal).fitting == []
    cluster.bench.clock.time += 30 + 61
    assert cluster.filter(equal).fitting == [node]


async def test_the_most_important_pod_comes_first(cluster: Preempting) -> None:
    pods = [await cluster.pod(f"p{priority}", priority=priority) for priority in (10, 30, 20)]
    for pod in pods:
        assert cluster.filter(pod).fitting == []
    cluster.bench.clock.time += SETTLED_S
    await cluster.preemption.reconcile()
    assert await cluster.nominated_node("p30") and not await cluster.nominated_node("p10")


@pytest.mark.parametrize("preemption", [False, True])
async def test_the_controller_evicts_only_if_it_is_told_to(tmp_path: Path, preemption: bool) -> None:
    kube, clock = FakeKube(), FakeClock()
    nodes = ("node-0", gpus(1))
    async with running(kube, tmp_path, nodes, clock=clock, preemption=preemption) as cluster:
        low = await cluster.make(admitted_pod("low", gpumem=MIB))
        assert await cluster.scheduler.bind(low, "node-0") == ""
        high = admitted_pod("high", gpumem=MIB)
        high["spec"]["priority"] = 10
        high = await cluster.make(high)
        assert (await cluster.scheduler.filter(high, "node-0"))["nodenames"] == []
        await clock.advance(2 * SETTLED_S)

        async def fits() -> bool:
            return bool((await cluster.scheduler.filter(high, "node-0"))["nodenames"])

        if preemption:
            await until(fits, clock=clock)
            assert await cluster.scheduler.bind(high, "node-0") == ""
        else:
            assert not await fits() and await kube.get(PODS, "low", namespace="default")


async def test_a_leader_that_begins_holds_what_the_one_before_made_room_for(tmp_path: Path) -> None:
    kube, clock = FakeKube(), FakeClock()
    async with running(kube, tmp_path, ("node-0", gpus(1)), clock=clock) as cluster:
        low = await cluster.make(admitted_pod("low", gpumem=MIB))
        assert await cluster.scheduler.bind(low, "node-0") == ""
    high = admitted_pod("high", gpumem=MIB)
    high["spec"]["priority"] = 10
    high = await kube.create(PODS, high)
    status = {"nominatedNodeName": "node-0"}
    await kube.patch(PODS, "high", {"status": status}, namespace="default", subresource="status")
    (second := tmp_path / "second").mkdir()
    async with running(kube, second, ("node-1", gpus(1)), clock=clock) as cluster:
        other = await cluster.make(admitted_pod("other", gpumem=MIB // 2))
        await kube.delete(PODS, "low", namespace="default")

        async def refused_for_high() -> bool:
            return "held for pod default/high" in str(await cluster.scheduler.filter(other, "node-0"))

        await until(refused_for_high, clock=clock)
        assert (await cluster.scheduler.filter(high, "node-0"))["nodenames"] == ["node-0"]
        assert await cluster.scheduler.bind(high, "node-0") == ""


async def test_the_room_of_a_nominated_pod_is_known_until_it_is_placed(cluster: Preempting) -> None:
    cluster.leaving |= {pod["metadata"]["uid"] for pod in (await cluster.bench.kube.list(PODS)).items}
    high = await cluster.pod("high", priority=10, gpumem=MIB)
    await cluster.refused(high)
    node = await cluster.nominated_node("high")
    (held,) = cluster.nominated.rooms()
    assert (held.pod, held.node, held.why) == ("high", node, Why.NOMINATION)
    assert [each.memory_mib for each in held.taken.values()] == [MIB]
    assert held.uncounted == {}, "its victims hold all of it"
    await cluster.report()
    (held,) = cluster.nominated.rooms()
    assert held.uncounted == held.taken, "they are gone, and no pod has it yet"
    assert await cluster.bench.bind(high, node) == ""
    assert list(cluster.nominated.rooms()) == []


async def test_another_replica_knows_the_room_by_the_status_of_the_pod(cluster: Preempting) -> None:
    high = await cluster.pod("high", priority=10)
    high["status"] = {"nominatedNodeName": "node-0"}
    cluster.bench.context.pending.observe(cluster.bench.parse(high))
    assert list(cluster.nominated.rooms()) == [], "the node is full, and none leaves it"
    cluster.leaving |= set(cluster.bench.ledger.totals.pods_on("node-0"))
    (held,) = cluster.nominated.rooms()
    assert (held.pod, held.node, held.until) == ("high", "node-0", float("inf"))
