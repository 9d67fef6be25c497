"""Making room for a pod that fits nowhere: pods of lower priority are evicted from one node.

As in kube-scheduler from 1.36 on: for each node the pods that would have to go for what the scheduler counts itself,
the least important first; an extender with a preempt verb is asked about these nodes, those without such pods included,
and says whom to evict there. Then the node is chosen where it hurts least.
"""

import logging
from collections.abc import Collection, Iterable

from lamina.control.disruption import violations
from lamina.errors import Outside
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.lab.scheduler import filters
from lamina.lab.scheduler.extender import Extender
from lamina.lab.scheduler.node_view import NodeView
from lamina.placement.victims import Cost, Victim, cost
from lamina.ports.kube import DISRUPTION_BUDGETS, PODS, EventRecorder, Kube, NotFound
from lamina.ports.kube.moments import seconds_of

log = logging.getLogger(__name__)


class Preempting:
    """Evicts by deleting, as kube-scheduler does."""

    def __init__(self, kube: Kube, extender: Extender | None, ignored: Collection[str], events: EventRecorder) -> None:
        self._kube = kube
        self._extender = extender
        self._ignored = ignored
        self._events = events

    async def make_room(self, pod: Object, views: Iterable[NodeView], hopeless: Collection[str], now: float) -> str:
        """Evict pods for `pod` on the best node, and return that node's name; nothing where that does not help.

        `hopeless` are nodes that no eviction mends. Raises Outside where the API or the extender fails.
        """
        views = list(views)
        if not self._may(pod, views):
            return ""
        on_node = {view.name: view for view in views}
        wanted = {view.name: _victims(pod, view, self._ignored) for view in views if view.name not in hopeless}
        named = {name: victims for name, victims in wanted.items() if victims is not None}
        extender = self._extender
        if named and extender and extender.config.preempt_verb and extender.is_interested(pod):
            chosen = await extender.preempt(pod, named, now)
            by_uid = {objects.uid(each): each for view in views for each in view.pods}
            named = {name: [by_uid[uid] for uid in uids if uid in by_uid] for name, uids in chosen.items()}
        named = {name: victims for name, victims in named.items() if victims and name in on_node}
        if not named:
            return ""
        budgets = (await self._kube.list(DISRUPTION_BUDGETS)).items
        node = min(named, key=lambda name: (_cost(named[name], budgets), name))
        for victim in named[node]:
            await self._evict(victim, pod, node)
        body = {"metadata": {"uid": objects.uid(pod)}, "status": {"nominatedNodeName": node}}
        await self._kube.patch(
            PODS, objects.name(pod), body, namespace=objects.namespace(pod), subresource="status"
        )  # fmt: skip
        return node

    def _may(self, pod: Object, views: list[NodeView]) -> bool:
        """Not again while those that were evicted for it before are still ending."""
        if objects.spec(pod).get("preemptionPolicy") == "Never":
            return False
        nominated = objects.status(pod).get("nominatedNodeName")
        there = next((view.pods for view in views if view.name == nominated), [])
        return not any(objects.is_deleting(each) and _priority(each) < _priority(pod) for each in there)

    async def _evict(self, victim: Object, pod: Object, node: str) -> None:
        try:
            await self._kube.delete(
                PODS, objects.name(victim), namespace=objects.namespace(victim), uid=objects.uid(victim)
            )  # fmt: skip
        except NotFound:
            return
        log.info("Evicted pod %s from %s for %s", objects.key(victim), node, objects.key(pod))
        try:
            await self._events.record(PODS, victim, "Preempted", f"Preempted by {objects.key(pod)} on node {node}")
        except Outside as error:
            log.warning("The event of an eviction could not be written: %s", error)


def _victims(pod: Object, view: NodeView, ignored: Collection[str]) -> list[Object] | None:
    """Whom the scheduler would evict on a node for what it counts itself; None where that does not help."""
    lower = [each for each in view.pods if _priority(each) < _priority(pod)]
    if not lower:
        return None
    staying = [each for each in view.pods if each not in lower]
    if filters.reasons(pod, _with(view, staying), ignored):
        return None
    victims = []
    for each in sorted(lower, key=lambda each: (-_priority(each), _started(each))):
        if filters.reasons(pod, _with(view, [*staying, each]), ignored):
            victims.append(each)
        else:
            staying.append(each)
    return victims


def _with(view: NodeView, pods: list[Object]) -> NodeView:
    made = NodeView(view.node, view.allocatable)
    for pod in pods:
        made.place(pod)
    return made


def _cost(victims: list[Object], budgets: list[Object]) -> Cost:
    broken = violations(victims, budgets)
    return cost([Victim(objects.uid(each), _priority(each), _started(each)) for each in victims], lambda uids: broken)


def _priority(pod: Object) -> int:
    return int(objects.spec(pod).get("priority") or 0)


def _started(pod: Object) -> float:
    began = objects.status(pod).get("startTime") or objects.meta(pod).get("creationTimestamp", "")
    return seconds_of(began) or 0.0
