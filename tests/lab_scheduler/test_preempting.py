"""A pod of higher priority gets its place, at the least cost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.ports.kube import PODS, PRIORITY_CLASSES, Refused
from lamina_lab.kubernetes import objects
from tests.lab_scheduler.cluster import SchedulerCluster, pod
from tests.worlds.clocks import settle


@pytest.fixture
async def cluster() -> AsyncIterator[SchedulerCluster]:
    made = SchedulerCluster()
    await made.extender.start()
    await made.add_node("n1")
    for name, value, policy in (("low", 10, ""), ("high", 1000, ""), ("polite", 1000, "Never")):
        body: dict[str, Any] = {"metadata": {"name": name}, "value": value}
        await made.create(PRIORITY_CLASSES, body | ({"preemptionPolicy": policy} if policy else {}))
    yield made
    await made.stop()
    await made.extender.stop()


async def settled(cluster: SchedulerCluster) -> None:
    for _ in range(3):
        await settle()
        await cluster.clock.advance(1.1)


def on_host(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


def names(cluster: SchedulerCluster) -> set[str]:
    return {objects.name(each) for each in cluster.pods() if not objects.is_deleting(each)}


async def test_the_class_gives_the_priority_and_must_exist(cluster: SchedulerCluster) -> None:
    made = await cluster.create(PODS, pod("a", priorityClassName="low"))
    assert made["spec"]["priority"] == 10
    with pytest.raises(Refused, match="no PriorityClass with name none was found"):
        await cluster.create(PODS, pod("b", priorityClassName="none"))


async def test_the_scheduler_evicts_for_what_it_counts_and_no_more_than_needed(cluster: SchedulerCluster) -> None:
    cluster.start()
    for number in range(4):
        await cluster.create(PODS, pod(f"low-{number}", cpu="2", priorityClassName="low"))
    await settle()
    await cluster.create(PODS, pod("high", cpu="2", priorityClassName="high"))
    await settled(cluster)
    gone = {f"low-{number}" for number in range(4)} - names(cluster)
    assert len(gone) == 1
    assert [event["message"] for event in cluster.events("Preempted")] == ["Preempted by default/high on node n1"]


async def test_no_pod_is_evicted_if_it_does_not_help_or_is_not_allowed(cluster: SchedulerCluster) -> None:
    cluster.start()
    for number in range(4):
        await cluster.create(PODS, pod(f"low-{number}", cpu="2", priorityClassName="low"))
    await settle()
    await cluster.create(PODS, pod("large", cpu="9", priorityClassName="high"))
    await cluster.create(PODS, pod("polite", cpu="2", priorityClassName="polite"))
    await cluster.create(PODS, pod("equal", cpu="2", priorityClassName="low"))
    await settled(cluster)
    assert {"low-0", "low-1", "low-2", "low-3"} <= names(cluster)


async def test_the_extender_is_asked_where_the_scheduler_would_evict_itself(cluster: SchedulerCluster) -> None:
    """And may choose other victims there, for what it counts."""
    await cluster.add_node("n2")
    cluster.start()
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name, gpu=1, cpu="4", nodeSelector=on_host("n1"), priorityClassName="low"))
    await cluster.create(PODS, pod("small", gpu=1, cpu="4", nodeSelector=on_host("n2"), priorityClassName="low"))
    await settle()
    cluster.capacity = 1
    cluster.extender.victims = {"n1": [objects.uid(cluster._named("a"))]}
    await cluster.create(PODS, pod("high", gpu=1, cpu="4", priorityClassName="high"))
    await settled(cluster)
    asked = cluster.extender.asked("preempt")[0]["NodeNameToMetaVictims"]
    assert {node: len(victims["Pods"]) for node, victims in asked.items()} == {"n1": 1}
    assert "a" not in names(cluster) and {"b", "small"} <= names(cluster)
    assert cluster._named("high")["status"]["nominatedNodeName"] == "n1"


async def test_the_extender_is_not_asked_where_its_resources_alone_are_lacking(cluster: SchedulerCluster) -> None:
    """As kube-scheduler up to 1.36, which expects at least one victim of its own on a node."""
    cluster.capacity = 2
    cluster.start()
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name, gpu=1, priorityClassName="low"))
    await settle()
    cluster.extender.victims = {"n1": [objects.uid(cluster._named("a"))]}
    await cluster.create(PODS, pod("high", gpu=1, priorityClassName="high"))
    await settled(cluster)
    assert cluster.extender.asked("preempt") == []
    assert {"a", "b"} <= names(cluster)
    assert "nominatedNodeName" not in cluster._named("high")["status"]
