"""Whatever the reason, a pod is evicted by the leader alone, within its budgets, once, and with an event."""

import ast
from pathlib import Path

import pytest

import lamina.controller
from lamina.controller.eviction.candidates import FoundSince
from lamina.controller.eviction.evictor import Evictor
from lamina.errors import Outside
from lamina.ports.kube import DISRUPTION_BUDGETS, EVENTS, PODS, EventRecorder, Object
from lamina.ports.kube.fake import FakeKube


class OnePod:
    """One pod, and a replica that may evict it."""

    def __init__(self) -> None:
        self.kube, self.leads = FakeKube(), True
        self.evictor = Evictor(self.kube, EventRecorder(self.kube, "lamina", now=lambda: 0.0), lambda: self.leads)

    async def pod(self) -> Object:
        return await self.kube.create(PODS, {"metadata": {"name": "a", "namespace": "default"}, "spec": {}})

    async def events(self) -> list[tuple[str, str, str]]:
        found = (await self.kube.list(EVENTS)).items
        return [(each["reason"], each["message"], each["type"]) for each in found]

    async def budget(self) -> None:
        meta = {"name": "b", "namespace": "default"}
        budget = {"metadata": meta, "spec": {"selector": {}}, "status": {"disruptionsAllowed": 0}}
        await self.kube.create(DISRUPTION_BUDGETS, budget)


async def test_a_pod_is_evicted_and_its_event_says_why() -> None:
    world = OnePod()
    assert await world.evictor.evict(await world.pod(), "Because", "It was due", warning=True)
    assert not (await world.kube.list(PODS)).items
    assert await world.events() == [("Because", "It was due", "Warning")]


async def test_only_the_leader_evicts() -> None:
    world = OnePod()
    pod, world.leads = await world.pod(), False
    with pytest.raises(Outside, match="not the leader"):
        await world.evictor.evict(pod, "Because", "It was due")
    assert not await world.evictor.try_evict(pod, "Because", "It was due")
    assert (await world.kube.list(PODS)).items == [pod] and not await world.events()


async def test_a_budget_holds_a_pod() -> None:
    world = OnePod()
    pod = await world.pod()
    await world.budget()
    with pytest.raises(Outside):
        await world.evictor.evict(pod, "Because", "It was due")
    assert not await world.evictor.try_evict(pod, "Because", "It was due")
    assert (await world.kube.list(PODS)).items == [pod] and not await world.events()


async def test_a_pod_that_is_gone_or_has_come_again_is_not_evicted() -> None:
    world = OnePod()
    pod = await world.pod()
    await world.kube.delete(PODS, "a", namespace="default")
    assert not await world.evictor.evict(pod, "Because", "It was due")
    again = await world.pod()
    assert not await world.evictor.evict(pod, "Because", "It was due")
    assert (await world.kube.list(PODS)).items == [again] and not await world.events()


def test_nothing_else_in_the_controller_evicts() -> None:
    root = Path(lamina.controller.__file__).parent
    calls = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("kube.evict")
    ]
    assert calls == ["eviction/evictor.py"]


def test_since_when_a_pod_is_found_begins_again_after_a_look_without_it() -> None:
    found = FoundSince()
    found.observe(["a", "b"], 10.0)
    found.observe(["a"], 12.0)
    found.observe(["a", "b"], 15.0)
    assert [found.seconds(uid, 16.0) for uid in ("a", "b", "never")] == [6.0, 1.0, 0.0]
