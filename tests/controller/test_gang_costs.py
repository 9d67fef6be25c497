"""Pod groups of many members: a filter call stays short, whether they fit or not."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.dialects.groups import GROUP_LABEL
from lamina.group_plans import PlanSearch, planner
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PLUGIN_POD_GROUPS, PODS, Object
from tests.controller.binders import Bench
from tests.worlds.objects import admitted_pod, gpus

NODES = [f"node-{number}" for number in range(100)]


def bench_with_nodes(nodes: int = 100) -> Bench:
    bench = Bench()
    for name in NODES[:nodes]:
        bench.offer(name, *gpus(8, prefix=name))
    return bench


async def members(
    bench: Bench, count: int, needed: int, memory: Callable[[int], int] = lambda _: 20_000
) -> list[Object]:
    await bench.kube.create(
        PLUGIN_POD_GROUPS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": needed}}
    )
    pods = []
    for number in range(count):
        pod = admitted_pod(f"p{number}", gpumem=memory(number))
        pod["metadata"]["labels"] = {GROUP_LABEL: "g"}
        pods.append(await bench.kube.create(PODS, pod))
    return pods


async def filtered(gangs: GangCoordinator, bench: Bench, pod: Object) -> Any:
    parsed = bench.parse(pod)
    return await gangs.restrict(parsed, bench.scheduler.filter(parsed, NODES))


async def test_members_that_do_not_fit_cost_under_100_ms_per_filter_call() -> None:
    """One GPU each of 800, for 1000 needed members of 3000, while other pods come and go."""
    bench = bench_with_nodes()
    pods, gangs = await members(bench, 3000, 1000), bench.coordinator()
    costs = []
    for number, pod in enumerate(pods[:20]):
        bench.offer(f"other-{number}")  # the state of the cluster is another one for each call
        started = time.thread_time()
        answer = await filtered(gangs, bench, pod)
        costs.append(time.thread_time() - started)
        assert "1000 members must be placed at once" in answer.summary and answer.fitting == []
    assert sorted(costs)[len(costs) // 2] < 0.1


async def test_members_that_fit_are_planned_once() -> None:
    bench = bench_with_nodes()
    pods, gangs = await members(bench, 800, 800), bench.coordinator()
    used: dict[str, int] = {}
    started = time.thread_time()
    for pod in pods:
        [node] = (await filtered(gangs, bench, pod)).fitting
        used[node] = used.get(node, 0) + 1
    assert used == dict.fromkeys(NODES, 8)
    assert (time.thread_time() - started) / len(pods) < 0.1


async def test_a_refused_plan_is_remembered_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0
    place = PlanSearch.place

    def counted(search: PlanSearch, pod: ParsedPod, nodes: Any) -> bool:
        nonlocal searches
        searches += 1
        return place(search, pod, nodes)

    monkeypatch.setattr(PlanSearch, "place", counted)
    monkeypatch.setattr(planner, "most_pods", lambda request, table: 1_000_000)  # so that only a search can tell
    bench = bench_with_nodes(1)
    pods, gangs = await members(bench, 20, 20), bench.coordinator()
    for pod in pods:
        assert "only 8 can be placed now" in (await filtered(gangs, bench, pod)).summary
    once = searches
    assert once < 2 * len(pods)
    bench.offer("node-1", *gpus(8, prefix="node-1"))
    assert "only 16 can be placed now" in (await filtered(gangs, bench, pods[0])).summary and searches > once
    bench.offer("node-2", *gpus(8, prefix="node-2"))
    assert len((await filtered(gangs, bench, pods[1])).fitting) == 1, "a refusal is not remembered beyond a change"


async def test_a_search_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_with_nodes()
    pods, gangs = await members(bench, 100, 100), bench.coordinator()
    place = PlanSearch.place

    def slow(search: PlanSearch, pod: ParsedPod, nodes: Any) -> bool:
        bench.clock.time += planner.SEARCH_S / 8
        return place(search, pod, nodes)

    monkeypatch.setattr(PlanSearch, "place", slow)
    reason = "pod group default/g is too large: in 0.5 s, places were found for 9 of 100 members; it waits for 30 s"
    assert (await filtered(gangs, bench, pods[0])).summary == reason
    monkeypatch.setattr(PlanSearch, "place", place)
    bench.offer("more", *gpus(8, prefix="more"))
    assert (await filtered(gangs, bench, pods[1])).summary == reason, "whatever changes"
    bench.clock.time += planner.TOO_LARGE_S
    assert len((await filtered(gangs, bench, pods[1])).fitting) == 1


async def test_groups_of_too_many_members_or_kinds_are_refused() -> None:
    bench = bench_with_nodes(1)
    pods, gangs = await members(bench, 1, 1001), bench.coordinator()
    reason = "pod group default/g: minMember must be an integer from 1 to 1000, got 1001"
    assert (await filtered(gangs, bench, pods[0])).summary == reason
    bench = bench_with_nodes(10)
    pods = await members(bench, 17, 17, memory=lambda number: 1000 + number)
    gangs = bench.coordinator()
    reason = "pod group default/g has 17 kinds of members; it may have at most 16"
    assert (await filtered(gangs, bench, pods[0])).summary == reason


async def test_a_group_is_read_once_for_members_that_are_bound_at_the_same_moment() -> None:
    bench = bench_with_nodes(1)
    pods, gangs = await members(bench, 3, 3), bench.coordinator()
    lists = [call for call in bench.kube.calls if call[0] == "list"]
    for pod in pods:
        await filtered(gangs, bench, pod)
    assert len([call for call in bench.kube.calls if call[0] == "list"]) == len(lists) + 1
