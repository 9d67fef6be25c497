"""Filter names only the best node where nothing but the policy tells nodes apart."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.controller import pending_pods
from lamina.controller.scheduling.best_node import BestNode, prefers_nodes
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.ports.kube import NODES, PODS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus

NAMES = ["node-0", "node-1", "node-2"]
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KINDS = ["nodeAffinity", "podAffinity", "podAntiAffinity"]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    async with running(FakeKube(), tmp_path, *((name, gpus(2, prefix=name)) for name in NAMES)) as made:
        yield made


async def asked(cluster: RunningController, pod: Object, **more: Any) -> list[str]:
    answer = await cluster.scheduler.ask("filter-to-best", {"pod": pod, "nodenames": NAMES, **more})
    assert answer["error"] == ""
    return list(answer["nodenames"])


async def made(cluster: RunningController, name: str, spec: Object | None = None) -> Object:
    pod = admitted_pod(name, gpumem=1000)
    pod["spec"] |= spec or {}
    return await cluster.make(pod)


async def test_the_answer_is_the_node_that_prioritize_prefers(cluster: RunningController) -> None:
    first = await made(cluster, "first")
    assert await cluster.scheduler.bind(first, "node-1") == ""
    pod = await made(cluster, "pod")
    scores = await cluster.scheduler.ask("prioritize", {"pod": pod, "nodenames": NAMES})
    assert {each["host"] for each in scores if each["score"] == 10} == {"node-1"}
    assert await asked(cluster, pod) == ["node-1"]
    assert await cluster.scheduler.bind(pod, "node-1") == ""


async def test_what_does_not_fit_is_answered_as_by_filter(cluster: RunningController) -> None:
    for number, name in enumerate(NAMES[1:]):
        whole = await cluster.make(admitted_pod(f"whole-{number}", gpu=2))
        assert await cluster.scheduler.bind(whole, name) == ""
    pod = await made(cluster, "pod")
    best, plain = [
        await cluster.scheduler.ask(verb, {"pod": pod, "nodenames": [*NAMES, "other"]})
        for verb in ("filter-to-best", "filter")
    ]
    assert best == plain and best["nodenames"] == ["node-0"] and len(best["failedNodes"]) == 3
    big = await cluster.make(admitted_pod("big", gpu=3))
    best, plain = [
        await cluster.scheduler.ask(verb, {"pod": big, "nodenames": NAMES}) for verb in ("filter-to-best", "filter")
    ]
    assert best == plain and best["nodenames"] == []


async def test_pods_at_the_same_time_do_not_get_the_same_room(cluster: RunningController) -> None:
    """Each answer holds the room until the bind, as when kube-scheduler has only one node to choose from."""
    pods = [await cluster.make(admitted_pod(f"whole-{number}", gpu=2)) for number in range(3)]
    answers = [await asked(cluster, pod) for pod in pods]
    assert sorted(answers) == [["node-0"], ["node-1"], ["node-2"]]
    for pod, (node,) in zip(pods, answers, strict=True):
        assert await cluster.scheduler.bind(pod, node) == ""


async def test_a_pod_that_comes_back_without_a_bind_gets_all_nodes(cluster: RunningController) -> None:
    """Another extender, or a plugin, has refused the node. After a bind it gets one node again."""
    pod = await made(cluster, "pod")
    assert await asked(cluster, pod) == ["node-0"]
    assert await asked(cluster, pod) == await asked(cluster, pod) == NAMES
    assert "no longer exists" in await cluster.scheduler.bind(pod | {"metadata": _gone(pod)}, "node-2")
    assert await asked(cluster, pod) == NAMES, "the bind was for another pod"
    assert await cluster.scheduler.bind(pod, "node-9") != ""
    assert await asked(cluster, pod) == ["node-0"]


def _gone(pod: Object) -> Object:
    return {**pod["metadata"], "name": "gone", "uid": "gone"}


@pytest.mark.parametrize("kind", KINDS)
async def test_preferences_of_the_pod_are_left_to_kube_scheduler(cluster: RunningController, kind: str) -> None:
    preferring = await made(cluster, "preferring", {"affinity": {kind: {PREFERRED: [{"weight": 1}]}}})
    assert await asked(cluster, preferring) == NAMES
    required: Any = {"nodeSelectorTerms": []} if kind == "nodeAffinity" else [{}]
    requiring = await made(cluster, "requiring", {"affinity": {kind: {REQUIRED: required, PREFERRED: []}}})
    assert len(await asked(cluster, requiring)) == 1


@pytest.mark.parametrize(("when", "prefers"), [("ScheduleAnyway", True), ("DoNotSchedule", False)])
def test_topology_spread_prefers_where_it_does_not_require(when: str, prefers: bool) -> None:
    required = {"whenUnsatisfiable": "DoNotSchedule"}
    assert prefers_nodes({"topologySpreadConstraints": [required, {"whenUnsatisfiable": when}]}) is prefers


@pytest.mark.parametrize("spec", [{}, {"affinity": None}, {"affinity": {"nodeAffinity": None}}])
def test_a_spec_that_says_nothing_prefers_nothing(spec: Object) -> None:
    assert not prefers_nodes(spec | {"topologySpreadConstraints": None})


async def test_taints_that_discourage_pods_are_left_to_kube_scheduler(cluster: RunningController) -> None:
    """They make no difference where all nodes have one, or none of the nodes that fit."""

    async def taint(name: str, *effects: str) -> None:
        taints = [{"key": effect, "effect": effect} for effect in effects]
        await cluster.kube.patch(NODES, name, {"spec": {"taints": taints}})

    async def answers(number: int, count: int) -> bool:
        pod = await made(cluster, f"pod-{number}")
        found = len(await asked(cluster, pod))
        await cluster.kube.delete(PODS, pod["metadata"]["name"], namespace="default")
        return found == count

    numbers = iter(range(10_000))

    async def soon(count: int) -> None:
        await until(lambda: answers(next(numbers), count), task=cluster.task)

    await taint("node-0", "NoSchedule")
    await soon(1)
    await taint("node-1", "NoSchedule", "PreferNoSchedule")
    await soon(3)
    for name in ("node-0", "node-2"):
        await taint(name, "PreferNoSchedule")
    await soon(1)
    await taint("node-1")
    await soon(3)
    for name in NAMES:
        await taint(name)
    await soon(1)
    await taint("node-2", "PreferNoSchedule")
    await soon(3)
    await cluster.kube.delete(NODES, "node-2")
    await soon(1)


async def test_whole_nodes_are_all_answered(cluster: RunningController) -> None:
    """An autoscaler asks where a pod fits."""
    pod = await made(cluster, "pod")
    nodes = [{"metadata": {"name": name}} for name in NAMES]
    answer = await cluster.scheduler.ask("filter-to-best", {"pod": pod, "nodes": {"items": nodes}})
    assert [each["metadata"]["name"] for each in answer["nodes"]["items"]] == NAMES


async def test_pods_without_gpus_or_without_a_uid_and_members_of_groups_get_all_nodes(
    cluster: RunningController,
) -> None:
    plain = await cluster.make(admitted_pod("plain"))
    assert await asked(cluster, plain) == NAMES
    assert await asked(cluster, admitted_pod("new", gpumem=1000)) == NAMES
    bench = Bench()
    member = admitted_pod("member", gpumem=1000)
    member["metadata"] |= {"uid": "u", "annotations": {"scheduling.k8s.io/group-name": "group"}}
    assert bench.parse(member).group is not None
    whole = FilterResult(fitting=NAMES)
    assert BestNode(bench.scheduler, bench.context.pending).choose(bench.parse(member), whole) is whole


def test_only_so_many_pods_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_pods, "MAX_PODS", 2)
    bench = Bench()
    for name in NAMES:
        bench.offer(name, *gpus(2, prefix=name))
    best, whole = BestNode(bench.scheduler, bench.context.pending), FilterResult(fitting=NAMES)

    def fitting(uid: str) -> int:
        pod = admitted_pod(uid, gpumem=1000)
        pod["metadata"]["uid"] = uid
        return len(best.choose(bench.parse(pod), whole).fitting)

    assert [fitting(uid) for uid in ("a", "b", "c", "a", "c")] == [1, 1, 1, 1, 3]


async def test_decisions_are_counted_as_those_of_filter(cluster: RunningController) -> None:
    await asked(cluster, await made(cluster, "pod"))
    async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
        assert 'lamina_decisions_total{outcome="fits",verb="filter"} 1.0' in (await response.text()).splitlines()


def test_where_the_policy_prefers_no_node_all_are_answered() -> None:
    """Nodes of which Lamina knows no GPUs stand for those whose devices kubelet allocates."""
    bench = Bench()
    pod = admitted_pod("pod", gpumem=1000)
    pod["metadata"]["uid"] = "u"
    whole = FilterResult(fitting=NAMES)
    best = BestNode(bench.scheduler, bench.context.pending)
    assert best.choose(bench.parse(pod), whole) is whole
    bench.offer("node-1", *gpus(2))
    assert best.choose(bench.parse(pod), whole) is whole, "one of them is as good as the others"
