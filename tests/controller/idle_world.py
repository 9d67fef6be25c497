"""A workload that may be idle on one node, with its agent and a controller that reclaims idle shares."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from lamina.config_source.live import LiveConfiguration
from lamina.configuration import Config, load
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.context import Context
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.idle_shares import IdleEvictions
from lamina.controller.eviction.notices import NoticedEvictions
from lamina.core.evictions import IdlePod
from lamina.core.gpus import Inventory
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.kube import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    EVENTS,
    GRANTS,
    PODS,
    STATEFUL_SETS,
    EventRecorder,
    Object,
)
from lamina.ports.kube.fake import FakeKube
from tests.controller.defrag_controller import Role
from tests.worlds.clocks import JumpingClock
from tests.worlds.clusters import container, grant, inventory, pod

HOUR_S, NOTICE_S = 3600.0, 1800.0


class IdleCluster:
    """A Deployment `web` of two pods on one node, its agent, and a controller. `section` is what is configured."""

    section = "idleShares"

    def __init__(self, settings: str = "hours: 4, namespaces: [default]", *, leads: bool = True) -> None:
        self.kube, self.clock = FakeKube(), JumpingClock(1_700_000_000.0)
        self.settings, self.role = settings, Role(leads)
        self.idle_since: dict[str, float] = {}

    async def allow_no_disruption(self) -> None:
        """A PodDisruptionBudget over all pods of the namespace."""
        budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {}}}
        await self.kube.create(DISRUPTION_BUDGETS, {**budget, "status": {"disruptionsAllowed": 0}})

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

    async def replica(self, kube: Any = None) -> tuple[Context, Evictor]:
        """A replica that has just begun and knows what watches report."""
        text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n{self.section}: {{{self.settings}}}\n"
        configuration, kube = LiveConfiguration(load(text, "test"), text), kube or self.kube
        context = Context(kube, self.clock, configuration, ClusterState(configuration), ResourceQuotas())
        context.ledger.observe_inventory(self.inventory(configuration.value))
        for obj in (await self.kube.list(GRANTS)).items:
            context.ledger.observe_grant(grant_record(obj))
        events = EventRecorder(self.kube, "lamina", now=self.clock.wall)
        return context, Evictor(kube, events, lambda: bool(self.role))

    async def evictions(self, kube: Any = None) -> NoticedEvictions:
        """Those of such a replica."""
        return IdleEvictions(*await self.replica(kube))

    def inventory(self, config: Config) -> Inventory:
        """What the agent says of the node."""
        now, hours = self.clock.wall(), config.idle_shares.hours
        idle = tuple(
            IdlePod(pod_uid=uid, since=int(since))
            for uid, since in self.idle_since.items()
            if hours and now - since >= hours * HOUR_S
        )
        return structs.replace(inventory(gpus=2), idle=idle)

    async def round(self, hours: float = 0.0, *, kube: Any = None) -> None:
        await self.clock.sleep(hours * HOUR_S)
        await (await self.evictions(kube)).reconcile()

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
