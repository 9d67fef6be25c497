"""Evicting one pod, whatever the reason: only while this replica leads, and with an event that says why.

Pods are evicted through the eviction API, so PodDisruptionBudgets hold, and by their UIDs, so that no other pod of the
same name goes in their place.
"""

import logging
from collections.abc import Callable

from lamina.errors import Outside
from lamina.ports.kube import PODS, Conflict, EventRecorder, Kube, NotFound, Object

log = logging.getLogger(__name__)


class Evictor:
    """Evicts for all policies of one replica. `leading` says whether this replica may write, `events` is where they say
    what they do."""

    def __init__(self, kube: Kube, events: EventRecorder, leading: Callable[[], bool]) -> None:
        self.events = events
        self.leading = leading
        self._kube = kube

    def check(self) -> None:
        """Raises Outside where this replica does not lead."""
        if not self.leading():
            raise Outside("this replica of the controller is not the leader")

    async def evict(
        self, pod: Object, reason: str, message: str, *, grace_s: int | None = None, warning: bool = False
    ) -> bool:
        """Evict the pod, and record `reason` and `message` as its event. Returns whether it was evicted: not where it
        is gone already.

        Raises Outside where a PodDisruptionBudget holds the pod, or this replica does not lead.
        """
        self.check()
        meta = pod["metadata"]
        try:
            await self._kube.evict(meta["name"], namespace=meta["namespace"], uid=meta["uid"], grace_s=grace_s)
        except (NotFound, Conflict):
            return False
        log.info("Evicted pod %s/%s: %s: %s", meta["namespace"], meta["name"], reason, message)
        await self.events.record(PODS, pod, reason, message, warning=warning)
        return True

    async def try_evict(
        self, pod: Object, reason: str, message: str, *, grace_s: int | None = None, warning: bool = False
    ) -> bool:
        """The same where a refusal matters to no other pod: it is logged, and the caller tries again later."""
        try:
            return await self.evict(pod, reason, message, grace_s=grace_s, warning=warning)
        except Outside as error:
            log.warning("Pod %s/%s cannot be evicted: %s", pod["metadata"]["namespace"], pod["metadata"]["name"], error)
            return False
