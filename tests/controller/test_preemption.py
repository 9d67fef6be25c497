"""The preempt verb, word for word as kube-scheduler speaks."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.ledger.disruption import violations
from lamina.ports.kube import DISRUPTION_BUDGETS, PODS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import RunningController, running
from tests.worlds.objects import admitted_pod, gpus


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    async with running(FakeKube(), tmp_path, ("node-0", gpus(2)), ("node-1", gpus(1, prefix="T"))) as made:
        yield made


async def resident(
    cluster: RunningController, name: str, *, priority: int = 0, node: str = "node-0", labels: Any = None, **limits: Any
) -> str:
    pod = admitted_pod(name, **limits)
    pod["spec"]["priority"] = priority
    pod["metadata"]["labels"] = labels or {}
    made = await cluster.make(pod)
    assert await cluster.scheduler.bind(made, node) == ""
    return str(made["metadata"]["uid"])


def urgent(priority: int = 10, **limits: Any) -> Object:
    pod = admitted_pod("urgent", **limits)
    pod["metadata"]["uid"] = "ffff"
    pod["spec"]["priority"] = priority
    return pod


async def asked(cluster: RunningController, pod: Object, **named: list[str]) -> dict[str, list[str]]:
    """Whom to evict, by node, as a scheduler with a node cache asks; `node_0=[...]` are its own victims."""
    victims = {
        node.replace("_", "-"): {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
        for node, uids in named.items()
    }
    body = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    answer = (await cluster.scheduler.ask("preempt", body))["nodeNameToMetaVictims"]
    return {node: [pod["uid"] for pod in each["pods"]] for node, each in answer.items()}


async def test_one_share_goes_and_no_more(cluster: RunningController) -> None:
    shares = {await resident(cluster, f"share-{number}", gpumem=8000, node="node-1") for number in range(4)}
    found = await asked(cluster, urgent(gpumem=8000), node_1=[])
    assert len(found["node-1"]) == 1 and set(found["node-1"]) < shares
    assert len((await asked(cluster, urgent(gpumem=16000), node_1=[]))["node-1"]) == 2


async def test_only_lower_priorities_go_and_other_nodes_are_dropped(cluster: RunningController) -> None:
    await resident(cluster, "equal", priority=10, gpumem=32000, node="node-1")
    low = await resident(cluster, "low", priority=1, gpumem=32000)
    lower = await resident(cluster, "lower", priority=0, gpumem=32000)
    assert await asked(cluster, urgent(gpumem=30000), node_0=[], node_1=[]) == {"node-0": [lower]}
    both = await asked(cluster, urgent(gpu=2), node_0=[], node_1=[])
    assert {node: set(victims) for node, victims in both.items()} == {"node-0": {low, lower}}
    assert await asked(cluster, urgent(priority=0, gpumem=30000), node_0=[]) == {}


async def test_a_victim_of_the_scheduler_is_exchanged_where_another_one_alone_does(cluster: RunningController) -> None:
    small = await resident(cluster, "small", gpumem=8000, node="node-1")
    large = await resident(cluster, "large", gpumem=24000, node="node-1")
    assert await asked(cluster, urgent(gpumem=20000), node_1=[small]) == {"node-1": [large]}


async def test_a_victim_that_frees_what_others_do_not_stays_one(cluster: RunningController) -> None:
    pod = admitted_pod("cpu", gpumem=8000)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8"}
    cpu = await cluster.make(pod)
    assert await cluster.scheduler.bind(cpu, "node-1") == ""
    large = await resident(cluster, "large", gpumem=24000, node="node-1")
    uid = cpu["metadata"]["uid"]
    found = await asked(cluster, urgent(gpumem=20000), node_1=[uid])
    assert set(found["node-1"]) == {uid, large}


async def test_a_pod_without_gpus_that_the_scheduler_evicts_stays_a_victim(cluster: RunningController) -> None:
    plain = await cluster.make(admitted_pod("plain"))
    uid = plain["metadata"]["uid"]
    await cluster.kube.bind("plain", namespace="default", uid=uid, node="node-0")
    assert await asked(cluster, urgent(gpumem=8000), node_0=[uid]) == {"node-0": [uid]}


async def test_whole_pods_are_understood_as_well(cluster: RunningController) -> None:
    uid = await resident(cluster, "low", gpumem=32000, node="node-1")
    pod = await cluster.kube.get(PODS, "low", namespace="default")
    body = {"Pod": urgent(gpumem=30000), "NodeNameToVictims": {"node-1": {"Pods": [pod], "NumPDBViolations": 0}}}
    answer = await cluster.scheduler.ask("preempt", body)
    assert answer == {"nodeNameToMetaVictims": {"node-1": {"pods": [{"uid": uid}], "numPDBViolations": 0}}}


async def test_capacity_that_is_or_becomes_free_needs_no_eviction(cluster: RunningController) -> None:
    await resident(cluster, "low", gpumem=32000, node="node-1")
    assert await asked(cluster, urgent(gpumem=30000), node_0=[]) == {}
    found = await cluster.kube.get(PODS, "low", namespace="default")
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await cluster.kube.replace(PODS, found)
    assert await asked(cluster, urgent(gpumem=30000), node_1=[]) == {}
    lower = await resident(cluster, "lower", gpu=2)
    assert await asked(cluster, urgent(gpumem=30000), node_0=[]) == {"node-0": [lower]}
    assert await asked(cluster, urgent(gpumem=30000), node_0=[], node_1=[]) == {}, "the room on node-1 comes"


async def test_budgets_are_spared_and_counted(cluster: RunningController) -> None:
    guarded = await resident(cluster, "guarded", priority=0, gpumem=32000, labels={"app": "db"})
    free = await resident(cluster, "free", priority=5, gpumem=32000)
    budget = {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 0},
    }
    await cluster.kube.create(DISRUPTION_BUDGETS, budget)
    assert await asked(cluster, urgent(gpumem=30000), node_0=[]) == {"node-0": [free]}
    body = {"Pod": urgent(gpu=2), "NodeNameToMetaVictims": {"node-0": {"Pods": [], "NumPDBViolations": 0}}}
    [answer] = (await cluster.scheduler.ask("preempt", body))["nodeNameToMetaVictims"].values()
    assert ({pod["uid"] for pod in answer["pods"]}, answer["numPDBViolations"]) == ({guarded, free}, 1)


async def test_a_victim_that_is_gone_drops_the_node(cluster: RunningController) -> None:
    assert await asked(cluster, urgent(gpumem=1000), node_0=["gone"]) == {}


def pod(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}}


def budget(allowed: int, selector: Any, **status: Any) -> Object:
    meta = {"name": "b", "namespace": "default"}
    return {"metadata": meta, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed, **status}}


@pytest.mark.parametrize(
    ("allowed", "selector", "violated"),
    [
        (1, {"matchLabels": {"app": "a"}}, 1),
        (2, {"matchLabels": {"app": "a"}}, 0),
        (0, {}, 3),
        (0, None, 0),
        (0, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, 1),
        (0, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}, 2),
    ],
)
def test_how_many_budgets_are_violated(allowed: int, selector: Any, violated: int) -> None:
    assert violations([pod("x", app="a"), pod("y", app="a"), pod("z")], [budget(allowed, selector)]) == violated


def test_a_pod_that_is_being_disrupted_is_counted_already() -> None:
    under_way = budget(0, {}, disruptedPods={"x": "2026-01-01T00:00:00Z"})
    assert violations([pod("x")], [under_way]) == 0
    elsewhere = {**under_way, "metadata": {"name": "b", "namespace": "other"}}
    assert violations([pod("y")], [elsewhere]) == 0
