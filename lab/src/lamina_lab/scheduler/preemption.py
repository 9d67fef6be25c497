"""Preemption for an unschedulable pod: pods of lower priority are evicted from one node.

As in kube-scheduler up to 1.36: for each node, the scheduler selects victims for the resources that it counts itself,
the least important first. An extender with a preempt verb gets the nodes that have such victims, and chooses the
victims there. Then the node with the lowest cost is chosen. Where only the extender's resources are lacking, there are
no such nodes, and no pod is evicted.
"""

import logging
from collections.abc import Collection, Iterable

from lamina.errors import Outside
from lamina.ledger.disruption import violations
from lamina.placement.eviction.victims import Cost, Victim, cost
from lamina.ports.kube import DISRUPTION_BUDGETS, PODS, EventRecorder, Kube, NotFound, Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.extender import Extender
from lamina_lab.scheduler.rules import filters
from lamina_lab.scheduler.rules.node_view import NodeView

log = logging.getLogger(__name__)


class Preemptor:
    """Evicts by deleting, as kube-scheduler does."""

    def __init__(self, kube: Kube, extender: Extender | None, ignored: Collection[str], events: EventRecorder) -> None:
        self._kube = kube
        self._extender = extender
        self._ignored = ignored
        self._events = events

    async def preempt(self, pod: Object, views: Iterable[NodeView], unresolvable: Collection[str], now: float) -> str:
        """Evict pods for `pod` on the best node and return the node's name, or "" if no eviction helps.

        Preemption does not help on `unresolvable` nodes. Raises Outside if the API or the extender fails.
        """
        views = list(views)
        if not self._may_preempt(pod, views):
            return ""
        on_node = {view.name: view for view in views}
        wanted = {view.name: _victims(pod, view, self._ignored) for view in views if view.name not in unresolvable}
        named = {name: victims for name, victims in wanted.items() if victims}
        extender = self._extender
        if named and extender and extender.config.preempt_verb and extender.is_interested(pod):
            chosen = await extender.preempt(pod, named, now)
            by_uid = {objects.uid(running_pod): running_pod for view in views for running_pod in view.pods}
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

    def _may_preempt(self, pod: Object, views: list[NodeView]) -> bool:
        """Not again while earlier victims of this pod are still terminating."""
        if objects.spec(pod).get("preemptionPolicy") == "Never":
            return False
        nominated = objects.status(pod).get("nominatedNodeName")
        there = next((view.pods for view in views if view.name == nominated), [])
        return not any(
            objects.is_deleting(nominated_pod) and _priority(nominated_pod) < _priority(pod) for nominated_pod in there
        )

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
            log.warning("Cannot write the event of an eviction: %s", error)


def _victims(pod: Object, view: NodeView, ignored: Collection[str]) -> list[Object]:
    """The pods to evict on a node for the resources that the scheduler counts; none if that does not help."""
    lower = [candidate for candidate in view.pods if _priority(candidate) < _priority(pod)]
    staying = [candidate for candidate in view.pods if candidate not in lower]
    if filters.reasons(pod, _with(view, staying), ignored):
        return []
    victims = []
    for candidate in sorted(lower, key=lambda candidate: (-_priority(candidate), _started(candidate))):
        if filters.reasons(pod, _with(view, [*staying, candidate]), ignored):
            victims.append(candidate)
        else:
            staying.append(candidate)
    return victims


def _with(view: NodeView, pods: list[Object]) -> NodeView:
    made = NodeView(view.node, view.allocatable)
    for pod in pods:
        made.place(pod)
    return made


def _cost(victims: list[Object], budgets: list[Object]) -> Cost:
    broken = violations(victims, budgets)
    return cost(
        [Victim(objects.uid(victim), _priority(victim), _started(victim)) for victim in victims], lambda uids: broken
    )


def _priority(pod: Object) -> int:
    return int(objects.spec(pod).get("priority") or 0)


def _started(pod: Object) -> float:
    began = objects.status(pod).get("startTime") or objects.meta(pod).get("creationTimestamp", "")
    return seconds_of(began) or 0.0
