"""Trouble around pod groups: quotas, bindings that fail, members that are unlike, evictions, groups not to be read."""

import math
from pathlib import Path
from typing import Any

import pytest

from lamina.controller.gangs import coordinator, group_reader, records
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.errors import Outside
from lamina.ledger.holds import Why
from lamina.ports.kube import PLUGIN_POD_GROUPS, PODS, Kube, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import RunningController, running
from tests.controller.pod_groups import answer, group, member
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.offer("node-0", *gpus(2))
    return made


def gangs_of(bench: Bench) -> GangCoordinator:
    return bench.coordinator()


async def pair(bench: Bench, **spec: Any) -> list[Object]:
    await group(bench, "a", 2, **spec)
    return [await bench.kube.create(PODS, member("a", number)) for number in range(2)]


def held(bench: Bench) -> list[int]:
    return [bench.memory(gpu=f"GPU-{number}") for number in range(2)]


async def test_a_quota_is_held_against_the_whole_group(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench)
    meta = {"name": "gpus", "namespace": "default"}
    bench.quotas.observe({"metadata": meta, "spec": {"hard": {"limits.nvidia.com/gpumem": 30000}}})
    why = "quota gpus allows 30000 of nvidia.com/gpumem; 0 are used and pod group default/a requests 40000"
    for pod in pods:
        assert (
            await made.restrict(bench.parse(pod), bench.scheduler.filter(bench.parse(pod), ["node-0"]))
        ).summary == why
        assert await answer(bench, made, pod, "node-0") == why
    assert held(bench) == [0, 0], "no member is bound alone"


async def test_the_place_of_a_member_whose_binding_fails_stays_held(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench)
    await answer(bench, made, pods[0], "node-0")
    assert await answer(bench, made, pods[1], "node-0") == "" and await bench.bind(pods[1]) == ""
    bench.leads = False
    assert await bench.bind(pods[0]) == "this replica of the controller is not the leader"
    bench.ledger.release(pods[0]["metadata"]["uid"], Why.GROUP)
    made.restore_place(bench.args(pods[0], "node-0"))
    assert held(bench) == [20000, 20000]
    bench.leads = True
    assert await bench.bind(pods[0]) == ""
    made.restore_place(bench.args(pods[0], "node-0"))
    assert held(bench) == [20000, 20000]


async def test_a_group_that_ends_up_placed_in_part_says_so(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench, scheduleTimeoutSeconds=30)
    await answer(bench, made, pods[0], "node-0")
    assert await answer(bench, made, pods[1], "node-0") == "" and await bench.bind(pods[1]) == ""
    bench.clock.time += 30
    late = "pod group default/a is placed in part: only 1 of its members could be bound in time; it continues soon"
    assert await answer(bench, made, pods[0], "node-0") == late
    other = await bench.pod("other", gpu=1)
    bench.clock.time += coordinator.PAUSE_S
    assert await bench.bind(other) == ""
    why = (
        "pod group default/a is placed in part: 1 of 2 members have a node; "
        "1 more must be placed at once, but only 0 can be placed now"
    )
    assert await answer(bench, made, pods[0], "node-0") == why
    assert await answer(bench, gangs_of(bench), pods[0], "node-0") == why, "and so it is after a restart"


async def test_members_that_are_not_bound_yet_are_not_called_missing(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench, scheduleTimeoutSeconds=30)
    for pod in pods:
        await answer(bench, made, pod, "node-0")
    bench.clock.time += 30
    reason = await answer(bench, made, pods[0], "node-0")
    assert (
        reason
        == "pod group default/a gave up: its members were ready, but could not be bound in time; it starts again soon"
    )


async def test_members_that_may_go_to_different_nodes_are_placed_on_them(bench: Bench) -> None:
    bench.offer("node-1", *gpus(1, prefix="T"))
    bench.offer("node-0", *gpus(1))
    made = gangs_of(bench)
    await group(bench, "a", 2)
    pods = []
    for number in range(2):
        pod = member("a", number)
        pod["spec"]["nodeSelector"] = {"pool": str(number)}
        pods.append(await bench.kube.create(PODS, pod))

    async def filtered(number: int) -> Any:
        return await made.restrict(
            bench.parse(pods[number]), bench.scheduler.filter(bench.parse(pods[number]), [f"node-{number}"])
        )

    assert (await filtered(0)).fitting == ["node-0"]
    assert (await filtered(1)).fitting == ["node-1"]
    assert "1 of 2 are ready" in await answer(bench, made, pods[0], "node-0")
    assert await answer(bench, made, pods[1], "node-1") == ""
    assert (bench.memory(), bench.memory("node-1", "T-0")) == (20000, 20000)


async def test_where_members_may_not_go_no_place_is_counted_once_that_is_known(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench)
    bench.offer("node-0", *gpus(1))
    bench.offer("node-1", *gpus(4, prefix="T"))
    for pod in pods:
        answer = await made.restrict(bench.parse(pod), bench.scheduler.filter(bench.parse(pod), ["node-0"]))
        assert "2 members must be placed at once, but only 1 can be placed now" in answer.summary, (
            "equal members may go to equal nodes"
        )


async def test_a_large_member_goes_before_a_small_one(bench: Bench) -> None:
    bench.offer("node-0", *gpus(1, memory=10000), *gpus(1, memory=20000, prefix="L"))
    made = gangs_of(bench)
    await group(bench, "a", 2)
    pods = [await bench.kube.create(PODS, member("a", n, memory=memory)) for n, memory in enumerate((9000, 20000))]
    answer = await made.restrict(bench.parse(pods[0]), bench.scheduler.filter(bench.parse(pods[0]), ["node-0"]))
    assert answer.fitting == ["node-0"]


@pytest.mark.parametrize("timeout", ["soon", -1, [3]])
async def test_a_time_limit_without_sense_is_refused(bench: Bench, timeout: Any) -> None:
    made, pods = gangs_of(bench), await pair(bench, scheduleTimeoutSeconds=timeout)
    reason = await answer(bench, made, pods[0], "node-0")
    assert reason == f"pod group default/a: scheduleTimeoutSeconds must be a number of seconds from 0, got {timeout!r}"


async def test_no_group_holds_places_for_ever(bench: Bench) -> None:
    made, pods = gangs_of(bench), await pair(bench, scheduleTimeoutSeconds=10**9)
    await answer(bench, made, pods[0], "node-0")
    bench.clock.time += 899 - records.WAIT_S
    made.expire()
    assert held(bench) == [20000, 20000]
    bench.clock.time += 1
    made.expire()
    assert held(bench) == [0, 0]


async def test_members_that_are_alike_share_nodes_and_spread_over_others(bench: Bench) -> None:
    bench.offer("node-1", *gpus(2, prefix="T"))
    made = gangs_of(bench)
    await group(bench, "a", 6)
    pods = [await bench.kube.create(PODS, member("a", number, memory=12000)) for number in range(6)]
    places = [
        (await made.restrict(bench.parse(pod), bench.scheduler.filter(bench.parse(pod), ["node-0", "node-1"]))).fitting
        for pod in pods
    ]
    assert sorted(node for [node] in places) == ["node-0"] * 4 + ["node-1"] * 2, "binpack fills one node first"


async def test_a_group_that_cannot_be_read_is_answered_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube: Kube = FakeKube()
    real = kube.get

    async def get(resource: Any, name: str, **rest: Any) -> Object:
        if resource == PLUGIN_POD_GROUPS:
            raise Outside("podgroups may not be read")
        return await real(resource, name, **rest)

    async with running(kube, tmp_path, ("node-0", gpus(1))) as cluster:
        monkeypatch.setattr(kube, "get", get)
        pod = await cluster.make(member("a", 0))
        answer = await cluster.scheduler.filter(pod, "node-0")
        assert answer == {"error": "podgroups may not be read"}
        assert await cluster.scheduler.bind(pod, "node-0") == "podgroups may not be read"


async def evicted(cluster: RunningController, pod: Object, *nodes: str) -> dict[str, int]:
    """How many pods would be evicted for the pod, by node."""
    body = {"Pod": pod, "NodeNameToMetaVictims": {node: {"Pods": [], "NumPDBViolations": 0} for node in nodes}}
    answer = (await cluster.scheduler.ask("preempt", body))["nodeNameToMetaVictims"]
    return {node: len(each["pods"]) for node, each in answer.items()}


async def test_no_pod_is_evicted_for_a_group_that_stays_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_reader, "_FRESH_S", 0.0)
    monkeypatch.setattr(group_reader, "_READING_PART", math.inf)  # else a slow reading is used for a while
    nodes = ("node-0", gpus(2)), ("node-1", gpus(1, prefix="T"))
    async with running(FakeKube(), tmp_path, *nodes) as cluster:
        for number, (node, _) in enumerate((nodes[0], nodes[0], nodes[1])):
            low = await cluster.make(admitted_pod(f"low-{number}", gpu=1))
            assert await cluster.scheduler.bind(low, node) == ""
        first = member("a", 0)
        first["spec"]["priority"] = 10
        first = await cluster.make(first)
        assert await evicted(cluster, first, "node-0") == {}, "there is no such group"
        await group(cluster, "a", 2)
        assert await evicted(cluster, first, "node-0") == {}, "the other member is missing"
        second = member("a", 1)
        second["spec"]["priority"] = 10
        await cluster.make(second)
        found = await evicted(cluster, first, "node-0", "node-1")
        assert found == {"node-0": 2}, "both fit node-0, and one alone fits node-1"
        await cluster.kube.delete(PODS, "low-2", namespace="default")
        await until(lambda: _free(cluster, first))
        assert await evicted(cluster, first, "node-0") == {"node-0": 1}, "the other member has room on node-1"


async def _free(cluster: RunningController, pod: Object) -> bool:
    plain = {**pod, "metadata": {"name": "plain", "namespace": "default"}}
    return bool((await cluster.scheduler.filter(plain, "node-1"))["nodenames"])
