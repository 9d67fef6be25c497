"""The controller makes room for the members of a pod group, on as many nodes as they need, or on none."""

import asyncio
import contextlib
from typing import Any

import pytest

from lamina.controller.eviction.group_victims import MAX_MEMBERS
from lamina.controller.eviction.preemption import PAUSE_S, SETTLED_S
from lamina.core.host_size import HostSize
from lamina.dialects.groups import GROUP_LABEL
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.pod_stages import pod_state
from lamina.ports.kube import DISRUPTION_BUDGETS, GRANTS, PODS, RESOURCE_QUOTAS, NotFound, Object, Refused
from tests.controller.pod_groups import group
from tests.controller.preempting import MIB, Preempting
from tests.worlds.deaths import Died, Life, mortal

NODES = ["node-0", "node-1", "node-2"]


@pytest.fixture
async def cluster() -> Preempting:
    """Three nodes with a GPU each, and two pods on each of them."""
    made = Preempting(*NODES)
    await made.fill()
    return made


async def members(
    cluster: Preempting, count: int, *, needed: int | None = None, priority: int = 10, **fields: Any
) -> list[Object]:
    await group(cluster.bench, "g", count if needed is None else needed)
    made = []
    for number in range(count):
        spec = {"gpumem": MIB, **fields}
        pod = await cluster.pod(f"g-{number}", priority=priority, labels={GROUP_LABEL: "g"}, **spec)
        made.append(pod)
    return made


async def offered(cluster: Preempting, pods: list[Object]) -> list[list[str]]:
    """What the filter answers about each member, one after another."""
    return [(await cluster.filter_member(pod)).fitting for pod in pods]


async def refused(cluster: Preempting, pods: list[Object], after_s: float = SETTLED_S) -> None:
    assert not any(await offered(cluster, pods))
    cluster.bench.clock.time += after_s
    await cluster.preemption.reconcile()


async def test_room_is_made_on_two_nodes_and_the_members_go_there(cluster: Preempting) -> None:
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    gone = await cluster.evicted()
    assert len(gone) == 4
    nodes = [await cluster.nominated_node(pod["metadata"]["name"]) for pod in pods]
    assert len(set(nodes)) == 2
    await cluster.report()
    pods = [await cluster.bench.kube.get(PODS, pod["metadata"]["name"], namespace="default") for pod in pods]
    cluster.bench.clock.time += 2
    assert await offered(cluster, pods) == [[node] for node in nodes]


async def test_free_room_is_used_first_and_held_meanwhile(cluster: Preempting) -> None:
    await cluster.leave("low-0", "low-3")
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    gone = await cluster.evicted() - {"low-0", "low-3"}
    assert gone in ({"low-1", "low-4"}, {"low-2", "low-5"})
    equal = await cluster.pod("equal", priority=10)
    assert (await cluster.filter_member(equal)).fitting == []


@pytest.mark.parametrize(
    ("count", "fields"),
    [
        (2, {"priority": 0}),
        (2, {"preemptionPolicy": "Never"}),
        (4, {}),
        (2, {"gpumem": 2 * MIB}),
    ],
)
async def test_no_pod_is_evicted_where_it_is_not_allowed_or_does_not_help(
    cluster: Preempting, count: int, fields: dict[str, Any]
) -> None:
    await refused(cluster, await members(cluster, count, **fields))
    assert await cluster.evicted() == set()


async def test_no_pod_is_evicted_for_a_group_that_waits_for_its_members(cluster: Preempting) -> None:
    await refused(cluster, await members(cluster, 2, needed=3))
    assert await cluster.evicted() == set()


async def test_no_pod_is_evicted_for_a_group_that_is_too_large(cluster: Preempting) -> None:
    await refused(cluster, await members(cluster, MAX_MEMBERS + 1, gpumem=256))
    assert await cluster.evicted() == set()


async def test_no_pod_is_evicted_before_the_nodes_of_all_members_are_known(cluster: Preempting) -> None:
    pods = await members(cluster, 1, needed=2)
    other = await cluster.pod("g-1", priority=10, gpumem=MIB, labels={GROUP_LABEL: "g"}, nodeSelector={"kind": "other"})
    await refused(cluster, pods)
    assert await cluster.evicted() == set()
    await refused(cluster, [*pods, other])
    assert len(await cluster.evicted()) == 4


async def test_no_pod_is_evicted_for_a_group_that_exceeds_a_quota(cluster: Preempting) -> None:
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": MIB}}}
    cluster.bench.quotas.observe(await cluster.bench.kube.create(RESOURCE_QUOTAS, quota))
    await refused(cluster, await members(cluster, 2))
    assert await cluster.evicted() == set()


async def test_as_few_as_needed_go_for_the_members_that_are_needed(cluster: Preempting) -> None:
    await refused(cluster, await members(cluster, 3, needed=2, gpumem=MIB // 2))
    assert len(await cluster.evicted()) == 2


async def test_pods_with_a_budget_stay_on_all_nodes_together(cluster: Preempting) -> None:
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 3},
    }
    await cluster.bench.kube.create(DISRUPTION_BUDGETS, budget)
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    assert await cluster.evicted() == set()
    body = {"status": {"disruptionsAllowed": 4}}
    await cluster.bench.kube.patch(DISRUPTION_BUDGETS, "b", body, namespace="default", subresource="status")
    await refused(cluster, pods)
    assert await cluster.evicted() == set()  # it was looked at a moment ago
    await refused(cluster, pods, after_s=PAUSE_S)
    assert len(await cluster.evicted()) == 4


async def test_members_share_a_node_only_where_its_cpu_suffices(cluster: Preempting) -> None:
    for node in NODES:
        cluster.bench.cluster_state.host.observe_node(node, HostSize(4000, 1 << 20))
    pods = await members(cluster, 4, gpumem=MIB // 2, cpu="3")
    await refused(cluster, pods)
    assert await cluster.evicted() == set()
    cluster.bench.cluster_state.host.observe_node("node-1", HostSize(6000, 1 << 20))
    await refused(cluster, pods, after_s=PAUSE_S)
    assert len(await cluster.evicted()) == 4


async def test_members_that_must_not_meet_go_to_different_nodes(cluster: Preempting) -> None:
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host"}]}}
    pods = await members(cluster, 2, gpumem=MIB // 2, affinity=apart)
    await refused(cluster, pods)
    nodes = {await cluster.nominated_node(pod["metadata"]["name"]) for pod in pods}
    assert len(nodes) == 2 and len(await cluster.evicted()) == 2


async def test_a_refused_eviction_gives_all_nodes_back_for_a_while(cluster: Preempting) -> None:
    evictions = 0

    def refuse_the_third(resource: object, name: str) -> Exception | None:
        nonlocal evictions
        evictions += 1
        return NotFound("it is gone") if evictions < 3 else Refused("not now") if evictions == 3 else None

    cluster.bench.kube.failing["evict"] = refuse_the_third  # type: ignore[attr-defined]
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    assert evictions == 3
    assert not any([await cluster.nominated_node(pod["metadata"]["name"]) for pod in pods])
    assert "PreemptionEnded" in await cluster.reasons()
    await refused(cluster, pods)
    assert evictions == 3
    await refused(cluster, pods, after_s=PAUSE_S)
    assert len(await cluster.evicted()) == 4


async def test_another_group_does_not_take_the_room_that_is_held(cluster: Preempting) -> None:
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    await cluster.report()
    await group(cluster.bench, "h", 2)
    labels = {GROUP_LABEL: "h"}
    others = [await cluster.pod(f"h-{number}", priority=10, gpumem=MIB // 4, labels=labels) for number in range(2)]
    assert await offered(cluster, others) == [[], []]
    cluster.bench.clock.time += 2
    assert all(await offered(cluster, pods))


async def test_no_pod_is_evicted_where_a_group_would_count_on_room_that_is_held_for_others(cluster: Preempting) -> None:
    other = await cluster.pod("other", priority=20, gpumem=MIB)
    await cluster.refused(other)
    gone = await cluster.evicted()
    pods = await members(cluster, 3)
    await refused(cluster, pods)
    assert await cluster.evicted() == gone
    await cluster.bench.kube.delete(PODS, "other", namespace="default")
    cluster.nominated.withdraw(other["metadata"]["uid"])
    await cluster.report()
    await refused(cluster, pods, after_s=PAUSE_S)
    assert len(await cluster.evicted()) == 6


async def test_a_nominated_node_that_is_asked_about_alone_leaves_the_plan_as_it_is(cluster: Preempting) -> None:
    await cluster.leave("low-0", "low-1", "low-3", "low-4")
    pods = await members(cluster, 2)
    planned = await offered(cluster, pods)
    assert sorted(planned) == [["node-0"], ["node-1"]]
    pods[1]["status"] = {"nominatedNodeName": "node-2"}
    alone = await cluster.filter_member(pods[1], "node-2")
    assert alone.fitting == []
    pods[1]["status"] = {"nominatedNodeName": planned[0][0]}
    assert (await cluster.filter_member(pods[1], planned[0][0])).fitting == []
    assert await offered(cluster, pods) == planned


async def test_a_member_is_bound_where_room_was_made(cluster: Preempting) -> None:
    pods = await members(cluster, 2)
    await refused(cluster, pods)
    await cluster.report()
    cluster.bench.clock.time += 2
    nodes = [each[0] for each in await offered(cluster, pods)]
    waits = [cluster.gangs.wait(cluster.bench.args(pod, node)) for pod, node in zip(pods, nodes, strict=True)]
    assert await asyncio.gather(*waits) == ["", ""]
    assert [await cluster.bench.bind(pod, node) for pod, node in zip(pods, nodes, strict=True)] == ["", ""]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("number", range(10))
async def test_after_a_crash_at_any_write_the_next_leader_makes_the_room_and_no_more(
    cluster: Preempting, number: int, applied: bool
) -> None:
    """Two nominations, and an eviction and an event for each of four victims."""
    pods = await members(cluster, 2)
    life = Life(2 * number + applied)
    first = await follower(cluster, mortal(cluster.bench.kube, life))
    assert not any(await offered(first, pods))
    first.bench.clock.time += SETTLED_S
    with contextlib.suppress(Died):
        await first.preemption.reconcile()
    assert life.over
    second = await follower(cluster, cluster.bench.kube)
    for _ in range(5):
        pods = await current(cluster, pods)
        if all(await offered(second, pods)):
            break
        second.bench.clock.time += PAUSE_S
        await second.preemption.reconcile()
        await second.report()
    nodes = [each[0] for each in await offered(second, await current(cluster, pods))]
    assert len(set(nodes)) == 2 and len(await cluster.evicted()) == 4


async def current(cluster: Preempting, pods: list[Object]) -> list[Object]:
    """The pods as they are now, as kube-scheduler sends them."""
    return [await cluster.bench.kube.get(PODS, pod["metadata"]["name"], namespace="default") for pod in pods]


async def follower(cluster: Preempting, kube: Any) -> Preempting:
    """Another replica over the same API server, which has read everything."""
    made = Preempting(*NODES, kube=kube, clock=cluster.bench.clock)
    for pod in (await cluster.bench.kube.list(PODS)).items:
        made.bench.ledger.observe_pod(pod["metadata"]["uid"], pod_state(pod), 0.0)
        made.bench.context.pending.observe(made.bench.parse(pod))
    for grant in (await cluster.bench.kube.list(GRANTS)).items:
        made.bench.ledger.observe_grant(grant_record(grant))
    return made
