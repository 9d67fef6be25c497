"""Room that is held for a pod whose victims are leaving.

Until they are gone, another pod could take what the first of them frees, and the eviction of the others would have
been useless. So on the node that a pod was nominated for, pods of the same or a lower priority fit only with what they
leave to it.
"""

from collections.abc import Callable
from typing import NamedTuple

from lamina.controller.capacity.node_states import Capacity
from lamina.controller.ledger.pod_stages import Stage
from lamina.controller.pods import ParsedPod
from lamina.controller.scheduling.decisions import FilterResult
from lamina.model.requests import PodRequest


class Nomination(NamedTuple):
    """The pod gets its room on the node when the victims are gone, or gives up at `until`, by a monotonic clock."""

    pod: ParsedPod
    request: PodRequest
    node: str
    victims: frozenset[str]
    until: float


class NominatedPods:
    """By UID. A pod that is bound or gone holds no room here."""

    def __init__(self, capacity: Capacity, now: Callable[[], float]) -> None:
        self._capacity = capacity
        self._now = now
        self._nominations: dict[str, Nomination] = {}

    def nominate(self, nomination: Nomination) -> None:
        self._nominations[nomination.pod.uid] = nomination

    def withdraw(self, uid: str) -> None:
        """The pod holds no room any more."""
        self._nominations.pop(uid, None)

    def holds(self, uid: str) -> bool:
        """Whether room is held for the pod."""
        self._expire()
        return uid in self._nominations

    def restrict(self, pod: ParsedPod, result: FilterResult) -> FilterResult:
        """The filter's answer without nodes where the pod would take the room of others."""
        self._expire()
        request = pod.request
        if request is None or not self._nominations:
            return result
        others = [
            each for uid, each in self._nominations.items() if uid != pod.uid and each.pod.priority >= pod.priority
        ]
        fitting = set(result.fitting)
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

    def _owner(self, request: PodRequest, node: str, others: list[Nomination]) -> ParsedPod | None:
        """One of the pods whose room on the node a pod with this request would take, if there is one."""
        here = [each for each in others if each.node == node]
        leaving = frozenset().union(*(each.victims | {each.pod.uid} for each in here))
        requests = [*(each.request for each in here), request]
        return None if self._capacity.fits_without(node, requests, leaving) else here[0].pod

    def _expire(self) -> None:
        now, ledger = self._now(), self._capacity.ledger
        self._nominations = {
            uid: each
            for uid, each in self._nominations.items()
            if each.until > now and ledger.pod(uid).stage < Stage.BOUND
        }
