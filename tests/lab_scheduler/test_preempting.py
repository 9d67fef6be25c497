"""A pod of higher priority gets its place, at the least cost."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.lab.informer import objects
from lamina.ports.kube import PODS, PRIORITY_CLASSES, Refused
from tests.lab_controllers.clocks import settle
from tests.lab_scheduler.test_loop import Room, pod


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    made = Room()
    await made.extender.start()
    await made.add_node("n1")
    for name, value, policy in (("low", 10, ""), ("high", 1000, ""), ("polite", 1000, "Never")):
        body: dict[str, Any] = {"metadata": {"name": name}, "value": value}
        await made.create(PRIORITY_CLASSES, body | ({"preemptionPolicy": policy} if policy else {}))
    yield made
    await made.stop()
    await made.extender.stop()


async def settled(room: Room) -> None:
    for _ in range(3):
        await settle()
        await room.clock.advance(1.1)


def names(room: Room) -> set[str]:
    return {objects.name(each) for each in room.pods() if not objects.is_deleting(each)}


async def test_the_class_gives_the_priority_and_must_exist(room: Room) -> None:
    made = await room.create(PODS, pod("a", priorityClassName="low"))
    assert made["spec"]["priority"] == 10
    with pytest.raises(Refused, match="no PriorityClass with name none was found"):
        await room.create(PODS, pod("b", priorityClassName="none"))


async def test_the_scheduler_evicts_for_what_it_counts_and_no_more_than_needed(room: Room) -> None:
    room.start()
    for number in range(4):
        await room.create(PODS, pod(f"low-{number}", cpu="2", priorityClassName="low"))
    await settle()
    await room.create(PODS, pod("high", cpu="2", priorityClassName="high"))
    await settled(room)
    gone = {f"low-{number}" for number in range(4)} - names(room)
    assert len(gone) == 1
    assert [event["message"] for event in room.events("Preempted")] == ["Preempted by default/high on node n1"]


async def test_nobody_is_evicted_where_it_does_not_help_or_is_not_wanted(room: Room) -> None:
    room.start()
    for number in range(4):
        await room.create(PODS, pod(f"low-{number}", cpu="2", priorityClassName="low"))
    await settle()
    await room.create(PODS, pod("large", cpu="9", priorityClassName="high"))
    await room.create(PODS, pod("polite", cpu="2", priorityClassName="polite"))
    await room.create(PODS, pod("equal", cpu="2", priorityClassName="low"))
    await settled(room)
    assert {"low-0", "low-1", "low-2", "low-3"} <= names(room)


async def test_the_extender_says_who_goes_for_what_it_counts(room: Room) -> None:
    room.capacity = 2
    room.start()
    for name in ("a", "b"):
        await room.create(PODS, pod(name, gpu=1, priorityClassName="low"))
    await settle()
    room.extender.victims = {"n1": [objects.uid(room._named("a"))]}
    await room.create(PODS, pod("high", gpu=1, priorityClassName="high"))
    await settled(room)
    asked = room.extender.asked("preempt")[0]
    assert asked["NodeNameToMetaVictims"] == {"n1": {"Pods": [], "NumPDBViolations": 0}}
    assert "a" not in names(room) and "b" in names(room)
    assert room._named("high")["status"]["nominatedNodeName"] == "n1"
