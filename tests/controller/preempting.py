"""A replica of the controller that evicts for pods that wait, next to a scheduler that never asks to preempt."""

from typing import Any

from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.group_victims import GroupVictims
from lamina.controller.eviction.preemption import SETTLED_S, Preemption
from lamina.controller.eviction.victims import PodVictims
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import EVENTS, PODS, EventRecorder, Kube, Object
from tests.controller.binders import Bench
from tests.worlds.clocks import SettableClock
from tests.worlds.objects import admitted_pod, gpus

MIB = 32768
"""The memory of each GPU."""


class Preempting:
    """One replica that evicts, with a GPU on each node."""

    def __init__(self, *nodes: str, kube: Kube | None = None, clock: SettableClock | None = None) -> None:
        self.bench = Bench(kube, clock=clock or SettableClock())
        self.nodes = nodes
        self.names: set[str] = set()
        for node in nodes:
            self.bench.offer(node, *gpus(1, prefix=node))
        context = self.bench.context
        self.leaving: set[str] = set()
        self.nominated = NominatedPods(context, self.leaving)
        self.gangs = GangCoordinator(context, self.bench.scheduler, self.nominated)
        victims, groups = PodVictims(context, self.gangs), GroupVictims(context, self.gangs)
        events = EventRecorder(self.bench.kube, "lamina", now=self.bench.clock.wall)
        evictor = Evictor(self.bench.kube, events, lambda: self.bench.leads)
        self.preemption = Preemption(context, evictor, victims, groups, self.nominated)

    async def pod(self, name: str, *, priority: int = 0, node: str = "", **fields: Any) -> Object:
        """A pod with half of a GPU, running on the node if one is given."""
        made = admitted_pod(name, gpumem=fields.pop("gpumem", MIB // 2))
        made["metadata"]["labels"] = {"app": name, **fields.pop("labels", {})}
        if cpu := fields.pop("cpu", ""):
            made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu}
        made["spec"] |= {"priority": priority, **fields}
        made = await self.bench.kube.create(PODS, made)
        if node:
            assert await self.bench.bind(made, node) == ""
        return made

    def filter(self, pod: Object) -> FilterResult:
        parsed = self.bench.parse(pod)
        result = self.nominated.restrict(parsed, self.bench.scheduler.filter(parsed, list(self.nodes)))
        return self._observed(parsed, result)

    async def filter_member(self, pod: Object, *nodes: str) -> FilterResult:
        """The same for a pod that may belong to a group; kube-scheduler offers these nodes, or all."""
        parsed = self.bench.parse(pod)
        result = self.nominated.restrict(parsed, self.bench.scheduler.filter(parsed, list(nodes or self.nodes)))
        return self._observed(parsed, await self.gangs.restrict(parsed, result))

    def _observed(self, pod: ParsedPod, result: FilterResult) -> FilterResult:
        """The answer, which the controller remembers."""
        cause = "" if result.fitting else "it fits nowhere"
        self.bench.context.pending.observe_try(pod, cause, self.bench.clock.monotonic())
        self.preemption.observe(pod, result)
        return result

    async def refused(self, pod: Object, after_s: float = SETTLED_S) -> None:
        """The pod fits nowhere, and waits so long."""
        assert self.filter(pod).fitting == []
        self.bench.clock.time += after_s
        await self.preemption.reconcile()

    async def evicted(self) -> set[str]:
        """Names of pods that are gone; the watch reports them."""
        there = {pod["metadata"]["name"] for pod in (await self.bench.kube.list(PODS)).items}
        return self.names - there

    async def fill(self, *, priority: int = 0, **fields: Any) -> None:
        """Two pods on each node."""
        for number in range(2 * len(self.nodes)):
            node = self.nodes[number % len(self.nodes)]
            await self.pod(f"low-{number}", priority=priority, node=node, **fields)
            self.names.add(f"low-{number}")

    async def leave(self, *names: str) -> None:
        """The pods are gone, and the watch has reported it."""
        for name in names:
            await self.bench.kube.delete(PODS, name, namespace="default")
        await self.report()

    async def report(self) -> None:
        """The watch reports which pods are gone."""
        there = {pod["metadata"]["uid"] for pod in (await self.bench.kube.list(PODS)).items}
        for record in list(self.bench.ledger.records()):
            if record.grant.pod_uid not in there:
                self.bench.ledger.remove_pod(record.grant.pod_uid, self.bench.context.now())

    async def nominated_node(self, name: str) -> str:
        status = (await self.bench.kube.get(PODS, name, namespace="default")).get("status") or {}
        return str(status.get("nominatedNodeName") or "")

    async def reasons(self) -> list[str]:
        return [event["reason"] for event in (await self.bench.kube.list(EVENTS)).items]
