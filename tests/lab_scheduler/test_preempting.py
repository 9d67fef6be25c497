"""A pod of higher priority gets its place, at the least cost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.ports.kube import PODS, PRIORITY_CLASSES, Refused
from lamina_lab.kubernetes import objects
from tests.lab_controllers.clocks import settle
from tests.lab_scheduler.cluster import SchedulerCluster, pod


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


async def test_the_extender_chooses_victims_for_its_resources(cluster: SchedulerCluster) -> None:
    cluster.capacity = 2
    cluster.start()
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name, gpu=1, priorityClassName="low"))
    await settle()
    cluster.extender.victims = {"n1": [objects.uid(cluster._named("a"))]}
    await cluster.create(PODS, pod("high", gpu=1, priorityClassName="high"))
    await settled(cluster)
    asked = cluster.extender.asked("preempt")[0]
    assert asked["NodeNameToMetaVictims"] == {"n1": {"Pods": [], "NumPDBViolations": 0}}
    assert "a" not in names(cluster) and "b" in names(cluster)
    assert cluster._named("high")["status"]["nominatedNodeName"] == "n1"
