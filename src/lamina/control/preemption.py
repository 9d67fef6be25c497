"""The extender's preempt verb: whom to evict on which node, so that a pod of higher priority gets its GPUs.

kube-scheduler names, for each candidate node, the pods that it would evict for what it counts itself. Where their GPUs
do not suffice, more are needed, or others instead: one of its victims may stay where those chosen free at least as much
of everything that the scheduler counts. A node where no eviction helps is dropped; where one of the nodes has room, or
will have it when pods that are ending are gone, nobody is evicted anywhere. For a member of a pod group that is placed
whole, an eviction helps where the others that are needed have room elsewhere, or on this node as well.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from msgspec import Struct

from lamina.control.capacity import Capacity
from lamina.control.configuration import Configuration
from lamina.control.disruption import violations
from lamina.control.gangs import Gangs
from lamina.dialects import parse
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity
from lamina.model.requests import PodRequest
from lamina.placement.victims import Victim, cheapest
from lamina.ports.kube import DISRUPTION_BUDGETS, PODS, Kube, Object

_AT_ONCE = 16
"""Nodes whose pods are read side by side."""
_SETS = 4000
"""Sets of victims that are compared for one pod, over all nodes."""


class PreemptArgs(Struct, frozen=True):
    """`ExtenderPreemptionArgs` of kube-scheduler: victims as whole pods, or by UID from one with a node cache."""

    pod: Object
    nodenametovictims: dict[str, Object] | None = None
    nodenametometavictims: dict[str, Object] | None = None

    @property
    def victims(self) -> dict[str, list[str]]:
        """By node, the UIDs of the pods that the scheduler would evict."""
        whole = {node: _pods(found) for node, found in (self.nodenametovictims or {}).items()}
        by_uid = {node: _pods(found) for node, found in (self.nodenametometavictims or {}).items()}
        named = {node: [str(pod["metadata"]["uid"]) for pod in pods] for node, pods in whole.items()}
        return named | {
            node: [str(_lowered(pod)["uid"]) for pod in pods] for node, pods in by_uid.items() if node not in named
        }


class Preemption:
    """Reads the ledger, pods and budgets, and changes nothing: who evicts is the scheduler."""

    def __init__(self, kube: Kube, capacity: Capacity, gangs: Gangs, configuration: Configuration) -> None:
        self._kube = kube
        self._capacity = capacity
        self._gangs = gangs
        self._configuration = configuration

    async def preempt(self, args: PreemptArgs) -> Object:
        """`ExtenderPreemptionResult`. Raises Outside where pods or budgets cannot be read."""
        try:
            request = parse(args.pod, self._configuration.value)
        except BadInput:
            return {"nodeNameToMetaVictims": {}}
        budgets = (await self._kube.list(DISRUPTION_BUDGETS)).items
        beside = await self._gangs.beside(args.pod)
        turns = asyncio.Semaphore(_AT_ONCE)
        asked = args.victims
        most_sets = _SETS // max(1, len(asked))

        async def on(node: str, named: list[str]) -> Object | None:
            async with turns:
                pods = (await self._kube.list(PODS, fields=f"spec.nodeName={node}")).items
            others = beside(node) if request is not None else []
            if others is None:
                return None
            requests = [] if request is None else [request, *others]
            return self._victims(args.pod, requests, node, named, pods, budgets, most_sets)

        found = await asyncio.gather(*[on(node, named) for node, named in asked.items()])
        helps = {node: each for node, each in zip(asked, found, strict=True) if each is not None}
        room = request is not None and not all(each["pods"] for each in helps.values())
        return {"nodeNameToMetaVictims": {} if room else {node: each for node, each in helps.items() if each["pods"]}}

    def _victims(
        self,
        pod: Object,
        requests: list[PodRequest],
        node: str,
        named: list[str],
        pods: Iterable[Object],
        budgets: list[Object],
        most_sets: int,
    ) -> Object | None:
        """`MetaVictims` for one node on which `requests` are to fit, or None where the node is to be dropped.

        Nobody is in them where room is there, or comes when those that are ending are gone.
        """
        on_node = {str(each["metadata"]["uid"]): each for each in pods}
        if any(uid not in on_node for uid in named):
            return None  # somebody went meanwhile: the scheduler will look again
        ending = frozenset(uid for uid, each in on_node.items() if each["metadata"].get("deletionTimestamp"))
        chosen = frozenset(named)
        if not self._fit(requests, pod, node, ending | chosen):
            kept = frozenset(uid for uid in named if not _exchangeable(pod, on_node[uid]))
            candidates = [
                _victim(each)
                for uid, each in on_node.items()
                if uid not in ending | kept and (uid in chosen or self._may_go(pod, uid, each, node))
            ]
            owed = _freed(on_node[uid] for uid in chosen - kept)

            def enough(uids: frozenset[str]) -> bool:
                freed = _freed(on_node[uid] for uid in uids)
                as_much = all(freed.get(name, Fraction(0)) >= amount for name, amount in owed.items())
                return as_much and self._fit(requests, pod, node, ending | kept | uids)

            def violated(uids: frozenset[str]) -> int:
                return _violated(kept | uids, on_node, budgets)

            found = cheapest(candidates, enough, violated, most_sets=most_sets)
            if found is None:
                return None
            chosen = kept | {victim.uid for victim in found}
        return {
            "pods": [{"uid": uid} for uid in sorted(chosen, key=list(on_node).index)],
            "numPDBViolations": _violated(chosen, on_node, budgets),
        }

    def _fit(self, requests: list[PodRequest], pod: Object, node: str, away: frozenset[str]) -> bool:
        inventory = self._capacity.ledger.inventory(node)
        if inventory is not None and all(inventory.offers_plainly(each.plain) for each in requests):
            return True  # kube-scheduler counts all that there is to count
        away |= {str(pod["metadata"].get("uid") or "")}
        return not requests or self._capacity.fit_without(node, requests, away)

    def _may_go(self, pod: Object, uid: str, other: Object, node: str) -> bool:
        return _priority(other) < _priority(pod) and self._capacity.ledger.holds(uid, node)


def _pods(victims: Object) -> list[Object]:
    return list(_lowered(victims).get("pods") or ())


def _lowered(fields: Mapping[str, Any]) -> Object:
    return {name.lower(): value for name, value in fields.items()}


def _priority(pod: Object) -> int:
    return int((pod.get("spec") or {}).get("priority") or 0)


def _victim(pod: Object) -> Victim:
    began = (pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp")
    started = datetime.fromisoformat(began).timestamp() if began else 0.0
    return Victim(str(pod["metadata"]["uid"]), _priority(pod), started)


def _exchangeable(pod: Object, victim: Object) -> bool:
    """Whether the scheduler named the victim for amounts alone, so that another one with as much would do as well."""
    return not any(_particular(each.get("spec") or {}) for each in (pod, victim))


def _particular(spec: Mapping[str, Any]) -> bool:
    containers = spec.get("containers") or ()
    ports = any(port.get("hostPort") for container in containers for port in container.get("ports") or ())
    affinity = spec.get("affinity") or {}
    apart = affinity.get("podAntiAffinity") or affinity.get("podAffinity") or spec.get("topologySpreadConstraints")
    return bool(ports or apart or spec.get("initContainers") or spec.get("overhead"))


def _freed(pods: Iterable[Object]) -> dict[str, Fraction]:
    """What the scheduler counts as free when the pods are gone: one place each, and what their containers request."""
    freed: dict[str, Fraction] = {}
    for pod in pods:
        freed["pods"] = freed.get("pods", Fraction(0)) + 1
        for container in pod["spec"].get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                freed[name] = freed.get(name, Fraction(0)) + parse_quantity(amount, where=name).value
    return freed


def _violated(uids: Iterable[str], on_node: Mapping[str, Object], budgets: list[Object]) -> int:
    return violations([on_node[uid] for uid in sorted(uids)], budgets)
