"""Idle shares are reclaimed after notice where the configuration allows it, and nowhere else."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import pytest
from msgspec import structs

from lamina.configuration import load
from lamina.controller.assembly import Controller, assemble
from lamina.controller.configuration import LiveConfiguration
from lamina.controller.leadership.readiness import Readiness
from lamina.controller.ledger.grant_objects import grant_record
from lamina.controller.settings import ControllerSettings
from lamina.errors import Outside
from lamina.model.idle import IdlePod
from lamina.operations.idle_decisions import KEEP, NOTICE, STALE_S
from lamina.operations.idle_rounds import REPLICAS, IdleRounds
from lamina.ports.kube import DEPLOYMENTS, EVENTS, GRANTS, PODS, STATEFUL_SETS, EventRecorder, Object
from lamina.ports.kube.fake import FakeKube
from tests.operations.clusters import container, grant, inventory, pod
from tests.operations.defrag_cluster import Jumping
from tests.operations.defrag_controller import Role

HOUR_S, NOTICE_S = 3600.0, 1800.0


class World:
    """A Deployment `web` of two pods on one node, its agent, and a controller."""

    def __init__(self, settings: str = "hours: 4, namespaces: [default]", *, leads: bool = True) -> None:
        self.kube, self.clock = FakeKube(), Jumping(1_700_000_000.0)
        self.settings, self.role = settings, Role(leads)
        self.idle_since: dict[str, float] = {}

    async def begin(self, *names: str, owner: str = "ReplicaSet") -> None:
        await self.kube.create(
            DEPLOYMENTS,
            {
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"replicas": len(names), "selector": {"matchLabels": {"app": "web"}}},
            },
        )
        await self.kube.create(
            STATEFUL_SETS,
            {
                "metadata": {"name": "web-1", "namespace": "default"},
                "spec": {"replicas": len(names), "selector": {"matchLabels": {"app": "web"}}},
            },
        )
        for name in names:
            made = pod(name, container(gpu=1, gpumem=2000), node="n")
            made["metadata"]["labels"] = {"app": "web", "pod-template-hash": "1"}
            made["metadata"]["ownerReferences"] = [{"uid": "s", "controller": True, "kind": owner, "name": "web-1"}]
            made["status"] = {"phase": "Running"}
            created = await self.kube.create(PODS, made)
            await self.kube.create(GRANTS, grant(created, "n", 2000, "GPU-n-0"))
            self.idle_since[created["metadata"]["uid"]] = self.clock.wall()

    async def controller(self, kube: Any = None) -> Controller:
        """A replica that has just begun and knows what watches report."""
        text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nidleShares: {{{self.settings}}}\n"
        configuration = LiveConfiguration(load(text, "test"), text)
        events = EventRecorder(self.kube, "lamina", now=self.clock.wall)
        made = assemble(kube or self.kube, self.clock, ControllerSettings(identity="one"), configuration, events)
        ledger, now, policy = made.context.ledger, self.clock.wall(), configuration.value.idle
        idle = tuple(
            IdlePod(pod_uid=uid, since=int(since))
            for uid, since in self.idle_since.items()
            if policy.hours and now - since >= policy.hours * HOUR_S
        )
        ledger.observe_inventory(structs.replace(inventory(gpus=2), idle=idle))
        for obj in (await self.kube.list(GRANTS)).items:
            ledger.observe_grant(grant_record(obj))
        return dataclasses.replace(made, readiness=cast(Readiness, self.role))

    async def round(self, hours: float = 0.0, *, kube: Any = None) -> None:
        await self.clock.sleep(hours * HOUR_S)
        await IdleRounds(await self.controller(kube)).round()

    async def annotations(self, name: str) -> Mapping[str, str]:
        return (await self.kube.get(PODS, name, namespace="default"))["metadata"].get("annotations") or {}

    async def annotate(self, name: str, **annotations: Any) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.kube.patch(PODS, name, body, namespace="default")

    async def reasons(self) -> set[str]:
        return {event["reason"] for event in (await self.kube.list(EVENTS)).items}

    async def web(self) -> Object:
        return await self.kube.get(DEPLOYMENTS, "web", namespace="default")

    @property
    def evicted(self) -> list[str]:
        return [name for verb, _, name in self.kube.calls if verb == "evict"]


async def test_a_workload_gets_notice_and_is_scaled_to_zero_when_it_is_over() -> None:
    world = World()
    await world.begin("a", "b")
    await world.round(3.9)
    assert not await world.annotations("a")
    await world.round(0.1)
    assert (await world.annotations("a"))[NOTICE] and await world.reasons() == {"IdleNotice"}
    await world.round(0.4)
    assert (await world.web())["spec"]["replicas"] == 2
    await world.round(0.1)
    found = await world.web()
    assert found["spec"]["replicas"] == 0 and found["metadata"]["annotations"] == {REPLICAS: "2"}
    assert "IdleShareReclaimed" in await world.reasons() and not world.evicted


async def test_a_workload_with_one_pod_at_work_is_left_alone() -> None:
    world = World()
    await world.begin("a", "b")
    await world.round(4)
    world.idle_since[(await world.kube.get(PODS, "b", namespace="default"))["metadata"]["uid"]] = world.clock.wall()
    await world.round(0.5)
    assert (await world.web())["spec"]["replicas"] == 2
    assert NOTICE not in await world.annotations("b"), "the notice of a pod that works is withdrawn"
    assert (await world.annotations("a"))[NOTICE]


async def test_evictions_follow_the_same_notice() -> None:
    world = World("hours: 4, namespaces: ['*'], action: evict")
    await world.begin("a", owner="Job")
    await world.round(4)
    await world.round(0.4)
    assert not world.evicted
    await world.round(0.1)
    assert world.evicted == ["a"] and (await world.web())["spec"]["replicas"] == 1


async def test_a_pod_that_a_disruption_budget_holds_stays_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: FakeKube, pod: str, *, namespace: str, uid: str) -> None:
        raise Outside("the disruption budget b needs 1 pod")

    monkeypatch.setattr(FakeKube, "evict", refuse)
    world = World("hours: 4, namespaces: ['*'], action: evict")
    await world.begin("a", "b")
    await world.round(4)
    await world.round(0.5)
    assert "IdleShareKept" in await world.reasons() and await world.annotations("b")


@pytest.mark.parametrize(
    "settings",
    ["", "hours: 0, namespaces: ['*']", "hours: 4", "hours: 4, namespaces: [other]"],
)
async def test_it_is_off_by_default_and_in_other_namespaces(settings: str) -> None:
    world = World(settings)
    await world.begin("a")
    for _ in range(3):
        await world.round(4)
    assert not await world.annotations("a") and (await world.web())["spec"]["replicas"] == 1


async def test_only_the_leader_reclaims() -> None:
    world = World(leads=False)
    await world.begin("a")
    await world.round(9)
    assert not await world.annotations("a")


async def test_its_owner_may_keep_a_pod() -> None:
    world = World()
    await world.begin("a")
    await world.round(4)
    await world.annotate("a", **{KEEP: "true"})
    await world.round(1)
    assert NOTICE not in await world.annotations("a") and (await world.web())["spec"]["replicas"] == 1


@pytest.mark.parametrize("written", ["soon", "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z", ""])
async def test_a_notice_that_nobody_could_have_read_is_given_again(written: str) -> None:
    """Whatever a tenant writes, and after an outage or another policy, the share is kept for the time of a notice."""
    world = World()
    await world.begin("a")
    await world.annotate("a", **{NOTICE: written})
    await world.round(4)
    assert (await world.web())["spec"]["replicas"] == 1 and (await world.annotations("a"))[NOTICE] != written
    await world.round((NOTICE_S + STALE_S + 60) / HOUR_S)
    assert (await world.web())["spec"]["replicas"] == 1
    await world.round(NOTICE_S / HOUR_S)
    assert (await world.web())["spec"]["replicas"] == 0


async def test_pods_that_no_workload_can_scale_are_left_alone() -> None:
    world = World()
    await world.begin("a", owner="Job")
    await world.round(4)
    await world.round(0.5)
    assert not world.evicted and (await world.web())["spec"]["replicas"] == 1


async def test_a_stateful_set_is_scaled_to_zero_too() -> None:
    world = World()
    await world.begin("a", "b", owner="StatefulSet")
    await world.round(4)
    await world.round(0.5)
    found = await world.kube.get(STATEFUL_SETS, "web-1", namespace="default")
    assert found["spec"]["replicas"] == 0 and (await world.web())["spec"]["replicas"] == 2
