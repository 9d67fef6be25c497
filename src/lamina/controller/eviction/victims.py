"""The preempt verb: which pods to evict on which node, so that a pod of higher priority gets its GPUs.

For each candidate node, kube-scheduler names the pods that it would evict for the resources it counts itself. Where
their GPUs do not suffice, more pods are needed, or others instead: one of its victims may stay if the chosen pods free
at least as much of everything that kube-scheduler counts. A node where no eviction helps is dropped. If the pod fits
one of the nodes already, or will fit when pods that are terminating are gone, no pod is evicted anywhere. For a member
of a pod group, an eviction helps if the other needed members fit on other nodes, or on this node as well.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.context import Context
from lamina.controller.eviction.candidates import (
    EvictionPlan,
    exchangeable,
    freed_by,
    leaving,
    list_pods,
    may_evict,
    must_wait,
    priority_of,
    spared,
    victim_of,
)
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.core.requests import PodRequest
from lamina.ledger.disruption import violations
from lamina.ledger.pods import ParsedPod
from lamina.placement.eviction.victims import Cost, cheapest, cost
from lamina.ports.kube import DISRUPTION_BUDGETS, Object

_MAX_SETS = 4000
"""How many sets of victims are compared for one pod, over all nodes."""


@dataclass(frozen=True)
class _Node:
    """One candidate node: its pods by UID, those `spared` for now, and the requests to fit there."""

    name: str
    pods: Mapping[str, Object]
    spared: frozenset[str]
    requests: list[PodRequest]
    budgets: list[Object]
    cluster_state: ClusterState

    def fits(self, pod: ParsedPod, evicted: frozenset[str]) -> bool:
        """Whether the requests fit when the evicted pods are gone."""
        inventory = self.cluster_state.ledger.inventory(self.name)
        if inventory is not None and all(
            inventory.offers_native_devices(request.native_devices) for request in self.requests
        ):
            return True  # kube-scheduler counts these devices itself
        return not self.requests or self.cluster_state.fits_without(self.name, self.requests, evicted | {pod.uid})

    def violated_budgets(self, uids: Iterable[str]) -> int:
        return violations([self.pods[uid] for uid in sorted(uids)], self.budgets)


class _Choice(NamedTuple):
    """The UIDs of the victims on a node; none where the pod fits already, or will when terminating pods are gone."""

    node: _Node
    victims: frozenset[str]

    @property
    def cost(self) -> Cost:
        """Where no budget is violated."""
        return cost([victim_of(self.node.pods[uid]) for uid in self.victims], lambda uids: 0)

    @property
    def meta(self) -> Object:
        """`MetaVictims` of kube-scheduler."""
        order = list(self.node.pods).index
        return {
            "pods": [{"uid": uid} for uid in sorted(self.victims, key=order)],
            "numPDBViolations": self.node.violated_budgets(self.victims),
        }


class PodVictims:
    """Reads the ledger, pods and budgets, and changes nothing."""

    def __init__(self, context: Context, gangs: GangCoordinator) -> None:
        self._context = context
        self._kube = context.kube
        self._cluster_state = context.cluster_state
        self._rules = context.rules
        self._gangs = gangs

    async def preempt(self, pod: ParsedPod, named: Mapping[str, list[str]]) -> Object:
        """`ExtenderPreemptionResult`; by node, the UIDs of the pods that kube-scheduler has `named`.

        Raises Outside where pods or budgets cannot be read.
        """
        helpful = {} if pod.problem else await self._choices(pod, named)
        return {"nodeNameToMetaVictims": {node: choice.meta for node, choice in helpful.items() if choice.victims}}

    async def plan(self, pod: ParsedPod, nodes: Iterable[str]) -> EvictionPlan | None:
        """The cheapest evictions on one of the nodes, all of which kube-scheduler allows the pod as they are.

        None where no eviction helps or is needed, or each would violate a PodDisruptionBudget. Raises Outside.
        """
        choices = await self._choices(pod, {node: [] for node in nodes})
        allowed = [each for each in choices.values() if not each.node.violated_budgets(each.victims)]
        if not allowed:
            return None
        best = min(allowed, key=lambda each: (each.cost, each.node.name))
        victims = [best.node.pods[uid] for uid in sorted(best.victims)]
        return EvictionPlan([(pod, best.node.name)], {best.node.name: victims})

    async def _choices(self, pod: ParsedPod, candidates: Mapping[str, list[str]]) -> dict[str, _Choice]:
        """By node; none at all where a pod with GPUs has to wait, or fits one of the nodes without an eviction.

        Raises Outside.
        """
        if must_wait(self._context, pod):
            return {}
        budgets = (await self._kube.list(DISRUPTION_BUDGETS)).items
        companions = await self._gangs.companions(pod)
        most_sets = _MAX_SETS // max(1, len(candidates))
        helpful: dict[str, _Choice] = {}
        for name, pods in (await list_pods(self._kube, candidates)).items():
            await asyncio.sleep(0)
            others = companions(name) if pod.request is not None else []
            if others is None:
                continue
            requests = [] if pod.request is None else [self._rules.bounded(pod, pod.request), *others]
            node = _Node(name, pods, spared(self._context, name, pods), requests, budgets, self._cluster_state)
            choice = self._victims(pod, node, candidates[name], most_sets)
            if choice is not None:
                helpful[name] = choice
        if pod.request is not None and not all(choice.victims for choice in helpful.values()):
            return {}
        return helpful

    def _victims(self, pod: ParsedPod, node: _Node, named: list[str], most_sets: int) -> _Choice | None:
        """The victims on one node, or None where the node is to be dropped."""
        if any(uid not in node.pods for uid in named):
            return None  # a pod is gone meanwhile: kube-scheduler will try again
        terminating = leaving(self._cluster_state.ledger, node.name, node.pods)
        chosen: frozenset[str] | None = frozenset(named)
        if node.spared.intersection(named) or not node.fits(pod, terminating | frozenset(named)):
            chosen = self._choose(pod, node, named, terminating, most_sets)
        return None if chosen is None else _Choice(node, chosen)

    def _choose(
        self, pod: ParsedPod, node: _Node, named: list[str], terminating: frozenset[str], most_sets: int
    ) -> frozenset[str] | None:
        """The cheapest victims that let the requests fit, or None where no eviction helps."""
        ledger, priority = self._cluster_state.ledger, priority_of(pod.obj)
        required = frozenset(uid for uid in named if not exchangeable(pod.obj, node.pods[uid]))
        if required & node.spared:
            return None
        candidates = [
            victim_of(obj)
            for uid, obj in node.pods.items()
            if uid not in terminating | required | node.spared
            and (uid in named or may_evict(ledger, node.name, obj, priority))
        ]
        owed = freed_by(node.pods[uid] for uid in frozenset(named) - required)

        def suffices(uids: frozenset[str]) -> bool:
            freed = freed_by(node.pods[uid] for uid in uids)
            frees_enough = all(freed.get(name, Fraction(0)) >= amount for name, amount in owed.items())
            return frees_enough and node.fits(pod, terminating | required | uids)

        def violated(uids: frozenset[str]) -> int:
            return node.violated_budgets(required | uids)

        victims = cheapest(candidates, suffices, violated, most_sets=most_sets)
        return None if victims is None else required | {victim.uid for victim in victims}
