"""Room that is held for a pod whose victims are leaving.

Until they are gone, another pod could take what the first of them frees, and the eviction of the others would have
been useless. So on the node that a pod was nominated for, pods of the same or a lower priority fit only with what they
leave to it.

The leader that evicted knows the victims. The status of the pod names its node as well, so another leader holds the
room, and so does this one where kube-scheduler evicted. There, the victims are the pods that are being deleted.
"""

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

from lamina.controller.context import Context
from lamina.controller.scheduling.scheduler import FilterResult
from lamina.core.ledger import beyond
from lamina.core.requests import PodRequest
from lamina.ledger.holds import Hold, Why
from lamina.ledger.pod_stages import Stage
from lamina.ledger.pods import ParsedPod

MAX_OBSERVED = 100
"""Nominations of pods' statuses that are looked at for one filter, the most important pods first."""


class Nomination(NamedTuple):
    """The pod gets its room on the node when the victims are gone, or gives up at `until`, by a monotonic clock."""

    pod: ParsedPod
    request: PodRequest
    node: str
    victims: Set[str]
    until: float


class NominatedPods:
    """By UID. A pod that is bound or gone holds no room here. `leaving` are the UIDs of pods that are being deleted."""

    def __init__(self, context: Context, leaving: Set[str] = frozenset()) -> None:
        self._context = context
        self._cluster_state = context.cluster_state
        self._pending = context.pending
        self._leaving = leaving
        self._nominations: dict[str, Nomination] = {}
        self._over: dict[str, str] = {}
        """By UID, the node where this replica held room for the pod and no longer does."""

    def nominate(self, nomination: Nomination) -> None:
        self._over.pop(nomination.pod.uid, None)
        self._nominations[nomination.pod.uid] = nomination

    def withdraw(self, uid: str) -> None:
        """The pod holds no room any more."""
        if (nomination := self._nominations.pop(uid, None)) is not None:
            self._over[uid] = nomination.node

    def holds(self, uid: str) -> bool:
        """Whether this replica has evicted pods for the pod and holds room for it."""
        self._expire()
        return uid in self._nominations

    def rooms(self) -> Iterator[Hold]:
        """The room that is held for each pod now: what it would take if those that are leaving were gone."""
        self._expire()
        totals = self._cluster_state.ledger.totals
        by_node: dict[str, list[Nomination]] = {}
        for each in self._others(frozenset(), float("-inf"), set(self._pending.nominated.values())):
            if not totals.holds(each.pod.uid, each.node):  # being placed: the ledger has its place
                by_node.setdefault(each.node, []).append(each)
        for node, here in by_node.items():
            leaving = frozenset().union(*(each.victims for each in here))
            theirs = totals.taken_of_pods(node, leaving)
            places = self._cluster_state.places_without(node, [each.request for each in here], leaving)
            for each, taken in zip(here, places, strict=True):
                if taken:
                    uncounted = beyond(taken, theirs)
                    owner = each.pod.uid, each.pod.namespace, each.pod.name
                    yield Hold(*owner, node, taken, each.until, Why.NOMINATION, uncounted)

    def gets_room(self, pod: ParsedPod) -> bool:
        """Whether the pod will fit the node that its status names when the pods that are being deleted are gone."""
        node, request = pod.nominated_node, pod.request
        if not node or request is None:
            return False
        return self._cluster_state.fits_without(node, [self._context.rules.bounded(pod, request)], self._leaving)

    def restrict(self, pod: ParsedPod, result: FilterResult) -> FilterResult:
        """The filter's answer without nodes where the pod would take the room of others."""
        self._expire()
        request = pod.request
        if request is None or not (self._nominations or self._pending.nominated):
            return result
        request, fitting = self._context.rules.bounded(pod, request), set(result.fitting)
        others = self._others({pod.uid}, pod.priority, fitting)
        refused = {
            node: f"room is held for pod {owner.namespace}/{owner.name}, for which pods were evicted"
            for node in dict.fromkeys(each.node for each in others)
            if node in fitting and (owner := self._owner(request, node, others)) is not None
        }
        if not refused:
            return result
        left = [name for name in result.fitting if name not in refused]
        summary = result.summary or ("" if left else next(iter(refused.values())))
        return FilterResult(
            fitting=left,
            failed={**result.failed, **refused},
            unresolvable=result.unresolvable,
            error=result.error,
            summary=summary,
        )

    def closed_to(self, uids: Set[str], priority: int) -> Set[str]:
        """The nodes where room is held for pods other than these, which have this priority."""
        self._expire()
        return {each.node for each in self._others(uids, priority, set(self._pending.nominated.values()))}

    def _others(self, uids: Set[str], priority: float, nodes: Set[str]) -> list[Nomination]:
        """Room that other pods than these, which are as important, hold: all of this replica, and on these nodes."""
        own = [each for each in self._nominations.values() if each.pod.uid not in uids]
        return [*(each for each in own if each.pod.priority >= priority), *self._observed(uids, priority, nodes)]

    def _observed(self, uids: Set[str], priority: float, nodes: Set[str]) -> Iterable[Nomination]:
        """What the statuses of other pods that are as important say about these nodes.

        Room that is not there is not held. A pod that is being bound holds its place in the ledger.
        """
        config, totals = self._context.configuration.value, self._cluster_state.ledger.totals
        named = [
            (other, node)
            for uid, node in self._pending.nominated.items()
            if node in nodes and uid not in self._nominations and self._over.get(uid) != node
            if (other := self._pending.pod(uid, config)) is not None and not totals.holds(uid, node)
            if uid not in uids and other.priority >= priority
        ]
        for other, node in sorted(named, key=lambda each: -each[0].priority)[:MAX_OBSERVED]:
            if other.request is not None and self._cluster_state.fits_without(node, [other.request], self._leaving):
                yield Nomination(other, other.request, node, self._leaving, float("inf"))

    def _owner(self, request: PodRequest, node: str, others: list[Nomination]) -> ParsedPod | None:
        """One of the pods whose room on the node a pod with this request would take, if there is one."""
        here = [each for each in others if each.node == node]
        leaving = frozenset().union(*(each.victims | {each.pod.uid} for each in here))
        requests = [*(each.request for each in here), request]
        return None if self._cluster_state.fits_without(node, requests, leaving) else here[0].pod

    def _expire(self) -> None:
        now, ledger = self._context.now(), self._cluster_state.ledger
        for uid, each in list(self._nominations.items()):
            if each.until <= now or ledger.pod(uid).stage >= Stage.BOUND:
                self.withdraw(uid)
        if self._over:
            self._over = {uid: node for uid, node in self._over.items() if uid in self._pending.nominated}
