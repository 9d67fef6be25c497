"""Has kube-scheduler try pods again that fit nowhere.

kube-scheduler tries such a pod again when something changes that it watches, such as the end of a pod. Nothing does
when the processes of a deleted pod end, when an agent has released a ResourceClaim, when a hold lapsed unused, when the
last member of a pod group is there, when a quota allows more, or when a replica begins to lead, and the pod would wait
for a minute, or for five with newer versions. So an annotation of the waiting pod is changed, which every version
answers with another try.
"""

import logging
from collections.abc import Callable, Iterable

from lamina.controller.context import Context
from lamina.controller.pending_pods import PendingPod
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.errors import Outside
from lamina.ports.kube import PODS

log = logging.getLogger(__name__)

RETRY = "lamina.dev/retry"
"""The annotation. Its value only has to differ from the one before."""
MAX_RETRIES = 1000
"""At once, those refused last; others wait for kube-scheduler's own next try."""


class Requeue:
    """Without a leader, pods are refused, and kube-scheduler does not try these again for a minute or more. A new
    leader does not know which were refused, so it asks for every pending pod. Only the leader filters, so only it knows
    of refused pods.
    """

    def __init__(self, context: Context, assumed: AssumedPods, leading: Callable[[], bool]) -> None:
        self._context = context
        self._assumed = assumed
        self._leading = leading
        self._led = False
        self._unwatched_ends = 0

    async def reconcile(self) -> None:
        """Called once a second."""
        self._assumed.lapse()
        freed_since, allowed = self._assumed.freed_since(), self._context.quotas.take_changed()
        led, self._led = self._led, self._leading()
        begins = self._led and not led
        if begins:
            for pod in self._context.pending:
                pod.waits = pod.waits or pod.reported is not None
        ended = self._context.ledger.silent_releases + self._context.cluster_state.claims.deallocations
        everything = begins or ended != self._unwatched_ends
        self._unwatched_ends = ended
        await self._retry(
            pod
            for pod in self._context.pending
            if pod.waits
            and (
                everything
                or pod.place_found
                or pod.namespace in allowed
                or (freed_since is not None and pod.refused_at >= freed_since)
            )
        )

    async def _retry(self, pods: Iterable[PendingPod]) -> None:
        """A pod that no longer exists, or cannot be written, is left alone."""
        chosen = sorted(pods, key=lambda pod: pod.refused_at)[-MAX_RETRIES:]
        for pod in chosen:
            pod.waits = pod.place_found = False
        value = f"{self._context.clock.wall():.0f}"
        for pod in chosen:
            change = {"metadata": {"uid": pod.uid, "annotations": {RETRY: value}}}
            try:
                await self._context.kube.patch(PODS, pod.name, change, namespace=pod.namespace)
            except Outside as error:
                log.info("Cannot have pod %s/%s tried again: %s", pod.namespace, pod.name, error)
