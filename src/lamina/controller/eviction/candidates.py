"""The pods of nodes as candidates for eviction: what Lamina and kube-scheduler know of them, and what is decided."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

from lamina.controller.context import Context
from lamina.core.quantities import parse_quantity
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_stages import Stage
from lamina.ledger.pods import ParsedPod
from lamina.placement.eviction.victims import Victim
from lamina.ports.kube import PODS, Kube, Object

_CONCURRENT_NODES = 16
"""How many nodes' pods are listed at the same time."""


class FoundSince:
    """Since when each of some pods has been found, by UID, in seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def observe(self, uids: Iterable[str], now: float) -> None:
        """These are found now. A pod that is not among them is forgotten."""
        self._since = {uid: self._since.get(uid, now) for uid in uids}

    def seconds(self, uid: str, now: float) -> float:
        """For how long the pod has been found; 0 where it was not found before."""
        return now - self._since.get(uid, now)


class EvictionPlan(NamedTuple):
    """Where pods are to go, and the pods to evict, by node. Pods may go to nodes where none is evicted."""

    places: list[tuple[ParsedPod, str]]
    victims: dict[str, list[Object]]


async def list_pods(kube: Kube, nodes: Collection[str]) -> dict[str, dict[str, Object]]:
    """The pods of these nodes, by node and UID. Raises Outside."""
    limit = asyncio.Semaphore(_CONCURRENT_NODES)

    async def pods_of(node: str) -> dict[str, Object]:
        async with limit:
            pods = (await kube.list(PODS, fields=f"spec.nodeName={node}")).items
        return {str(pod["metadata"]["uid"]): pod for pod in pods}

    return dict(zip(nodes, await asyncio.gather(*map(pods_of, nodes)), strict=True))


def leaving(ledger: Ledger, node: str, pods: Mapping[str, Object]) -> frozenset[str]:
    """The UIDs of pods that terminate, and of pods that are gone, but hold room until a watch reports it or their
    processes have ended."""
    terminating = frozenset(uid for uid, pod in pods.items() if pod["metadata"].get("deletionTimestamp"))
    held = (uid for uid in ledger.totals.pods_on(node) if uid not in pods)
    return terminating.union(uid for uid in held if ledger.pod(uid).stage >= Stage.BOUND)


def may_evict(ledger: Ledger, node: str, pod: Object, priority: int) -> bool:
    """Whether a pod of this priority may evict the pod for the GPUs that it has on the node."""
    return priority_of(pod) < priority and ledger.totals.holds(str(pod["metadata"]["uid"]), node)


def spared(context: Context, node: str, pods: Mapping[str, Object]) -> frozenset[str]:
    """The UIDs of those with GPUs on the node that have not run for `preemption.minimumRuntimeMinutes`."""
    rules, now_s, totals = context.configuration.value.preemption, context.clock.wall(), context.ledger.totals
    return frozenset(
        uid for uid, pod in pods.items() if totals.holds(uid, node) and rules.spares(now_s - _started_s(pod))
    )


def must_wait(context: Context, pod: ParsedPod) -> bool:
    """Whether the pod has waited for room for less than `preemption.delaySeconds`."""
    return context.configuration.value.preemption.delays(_waited_s(context, pod))


def _waited_s(context: Context, pod: ParsedPod) -> float:
    """For how long the pod has waited for room, by tries that the controller knows, or else by the pod's condition."""
    tried, now = context.pending.of(pod.uid), context.now()
    if tried is not None and tried.refused(now):
        return now - tried.refused_since
    for condition in (pod.obj.get("status") or {}).get("conditions") or ():
        if (condition.get("type"), condition.get("reason")) == ("PodScheduled", "Unschedulable"):
            return context.clock.wall() - _moment(condition.get("lastTransitionTime"))
    return 0.0


def victim_of(pod: Object) -> Victim:
    """The pod as others are compared with it."""
    return Victim(str(pod["metadata"]["uid"]), priority_of(pod), _started_s(pod))


def _started_s(pod: Object) -> float:
    """When it started, or was created, in seconds since 1970; 0 where neither is known."""
    return _moment((pod.get("status") or {}).get("startTime") or pod["metadata"].get("creationTimestamp"))


def _moment(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def priority_of(pod: Object) -> int:
    return int((pod.get("spec") or {}).get("priority") or 0)


def exchangeable(pod: Object, victim: Object) -> bool:
    """Whether kube-scheduler named the victim only for amounts, so that another pod with as much would do as well."""
    return not any(_needs_more_than_amounts(obj.get("spec") or {}) for obj in (pod, victim))


def constrained_by_pods(spec: Mapping[str, Any]) -> bool:
    """Whether other pods decide where the pod fits by more than what they request."""
    containers = spec.get("containers") or ()
    ports = any(port.get("hostPort") for container in containers for port in container.get("ports") or ())
    affinity = spec.get("affinity") or {}
    other_pods = affinity.get("podAntiAffinity") or affinity.get("podAffinity") or spec.get("topologySpreadConstraints")
    return bool(ports or other_pods)


def freed_by(pods: Iterable[Object]) -> dict[str, Fraction]:
    """What kube-scheduler counts as free when the pods are gone: one pod each, and what their containers request."""
    freed: dict[str, Fraction] = {}
    for pod in pods:
        freed["pods"] = freed.get("pods", Fraction(0)) + 1
        for container in pod["spec"].get("containers") or ():
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                freed[name] = freed.get(name, Fraction(0)) + parse_quantity(amount, where=name).value
    return freed


def _needs_more_than_amounts(spec: Mapping[str, Any]) -> bool:
    """Whether more than the requests of the ordinary containers decides where the pod fits."""
    return constrained_by_pods(spec) or bool(spec.get("initContainers") or spec.get("overhead"))
