"""The places of a pod group: chosen as the packing policy chooses for single pods, and reserved from the filter on."""

import pytest

from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.gangs.records import PLAN_S
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.core.ledger import taken_by
from lamina.dialects.groups import GROUP_LABEL
from lamina.group_plans import PlanSearch
from lamina.ledger.holds import Hold
from lamina.ledger.pods import ParsedPod
from lamina.placement import PodPlacement
from lamina.ports.kube import PODS, Object
from tests.controller.binders import Bench
from tests.controller.pod_groups import answer, group, member
from tests.controller.usual_pods import usual, watched
from tests.worlds.objects import admitted_pod, gpus

NODES = [f"node-{number}" for number in range(6)]
HELD = [(1000, 10), (9000, 20), (20_000, 50), (30_000, 0), (4000, 90), (16_000, 30)]
"""What is held of the first GPU of each node, in MiB and percent."""


async def learned() -> Bench:
    """Six nodes of four GPUs with something on one of them, and a learned policy."""
    bench = Bench()
    for node, (memory, cores) in zip(NODES, HELD, strict=True):
        bench.offer(node, *gpus(4, prefix=node))
        held = bench.parse(admitted_pod(f"held-{node}", gpumem=memory, gpucores=cores))
        assert take(bench, held, node)
    for pod in usual():
        await bench.kube.create(PODS, pod)
    await watched(bench)
    await bench.scheduler.packing.learn()
    return bench


def take(bench: Bench, pod: ParsedPod, node: str) -> dict[str, object]:
    """Hold for the pod what it would get on the node."""
    assert pod.request is not None
    placement = bench.scheduler.place(pod, pod.request, node)
    assert isinstance(placement, PodPlacement)
    owner, now = (pod.uid or pod.name, "default", pod.name), bench.clock.monotonic()
    bench.ledger.hold(Hold.of_shares(*owner, node, placement.containers, now))
    return dict(taken_by(placement.containers))


def pods(bench: Bench, count: int, **limits: object) -> list[ParsedPod]:
    made = []
    for number in range(count):
        pod = admitted_pod(f"m{number:02d}", **limits)
        pod["metadata"]["uid"] = f"m{number:02d}"
        made.append(bench.parse(pod))
    return made


@pytest.mark.parametrize(
    "limits",
    [{"gpumem": 3000, "gpucores": 10}, {"gpumem": 12_000, "gpucores": 30}, {"gpu": 2, "gpumem": 5000}, {"gpu": 1}],
    ids=str,
)
async def test_members_go_where_single_pods_would_go_one_after_another(limits: dict[str, object]) -> None:
    bench = await learned()
    wanted = pods(bench, 10, **limits)
    search = PlanSearch(bench.plan_basis())
    assert all(search.place(pod, None) for pod in wanted)
    for pod in wanted:
        scores = bench.scheduler.scores(pod, bench.scheduler.filter(pod, NODES).fitting).by_node()
        node = max(scores, key=scores.__getitem__)
        assert (node, take(bench, pod, node)) == (search.plan[pod.uid].node, dict(search.plan[pod.uid].taken))


async def test_members_of_other_policies_go_where_these_prefer() -> None:
    bench = await learned()
    search = PlanSearch(bench.plan_basis())
    for number in range(6):
        pod = admitted_pod(f"m{number}", gpu=1)
        pod["metadata"] |= {"uid": f"m{number}", "annotations": {"hami.io/node-scheduler-policy": "spread"}}
        assert search.place(bench.parse(pod), None)
    assert {place.node for place in search.plan.values()} == set(NODES)


async def test_places_are_reserved_from_the_filter_on() -> None:
    """Another pod that comes before the binding does not get the room, and no member is refused."""
    bench, members, gangs = await two_halves()
    [node] = (await filtered(bench, gangs, members[0])).fitting
    stranger = bench.parse(await bench.pod("stranger", gpumem=20_000))
    assert bench.scheduler.filter(stranger, NODES[:2]).fitting == []
    [other] = (await filtered(bench, gangs, members[1])).fitting
    assert {node, other} == set(NODES[:2])
    assert "1 of 2 are ready" in await answer(bench, gangs, members[0], node)
    assert await answer(bench, gangs, members[1], other) == ""


async def test_a_plan_that_no_binding_follows_is_released() -> None:
    bench, members, gangs = await two_halves()
    await filtered(bench, gangs, members[0])
    assert bench.memory("node-0", "node-0-0") == bench.memory("node-1", "node-1-0") == 20_000
    bench.clock.time += PLAN_S
    bench.ledger.expire(bench.clock.monotonic())
    assert bench.memory("node-0", "node-0-0") == bench.memory("node-1", "node-1-0") == 0


async def test_places_stay_reserved_while_kube_scheduler_holds_the_bindings() -> None:
    """Its own gang scheduling filters all members before it lets the first be bound. No group holds them for ever."""
    bench, members, gangs = await two_halves()
    planned = [(await filtered(bench, gangs, member)).fitting for member in members]
    for _ in range(int(60 / PLAN_S)):
        assert [(await filtered(bench, gangs, member)).fitting for member in members] == planned
        bench.clock.time += PLAN_S - 1
        bench.ledger.expire(bench.clock.monotonic())
        assert bench.memory("node-0", "node-0-0") == 20_000
    bench.clock.time += 60
    await filtered(bench, gangs, members[0])
    bench.clock.time += PLAN_S
    bench.ledger.expire(bench.clock.monotonic())
    assert bench.memory("node-0", "node-0-0") == 0


async def test_a_new_plan_replaces_the_one_before() -> None:
    """A member that kube-scheduler does not allow on its planned node is planned elsewhere; nothing counts twice."""
    bench, members, gangs = await two_halves()
    [planned] = (await filtered(bench, gangs, members[0])).fitting
    bench.offer("node-2", *gpus(1, prefix="node-2"))
    others = [node for node in NODES[:3] if node != planned]
    [node] = (await filtered(bench, gangs, members[0], *others)).fitting
    assert node != planned
    held = [bench.memory(each, f"{each}-0") for each in NODES[:3]]
    assert sorted(held) == [0, 20_000, 20_000]


async def two_halves() -> tuple[Bench, list[Object], GangCoordinator]:
    """Two nodes of one GPU, and a group of two members that need more than half of one."""
    bench = Bench()
    for node in NODES[:2]:
        bench.offer(node, *gpus(1, prefix=node))
    await group(bench, "a", 2)
    members = [await bench.kube.create(PODS, member("a", number)) for number in range(2)]
    assert members[0]["metadata"]["labels"] == {GROUP_LABEL: "a"}
    return bench, members, bench.coordinator()


async def filtered(bench: Bench, gangs: GangCoordinator, pod: Object, *nodes: str) -> FilterResult:
    parsed = bench.parse(pod)
    return await gangs.restrict(parsed, bench.scheduler.filter(parsed, list(nodes or NODES[:3])))
