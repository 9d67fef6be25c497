"""Pods that fit nowhere, to have kube-scheduler try them again.

kube-scheduler tries such a pod again when something changes that it watches, such as the end of a pod. Nothing does
when the processes of a deleted pod end, when an agent has released a ResourceClaim, when a bind does not come for which
room was held, when the last member of a pod group is there, when a quota allows more, or when a replica begins to
lead, and the pod would wait for a minute, or for five with newer versions.
So an annotation of the waiting pod is changed, which every version answers with another try.
"""

import logging
from collections.abc import Set

from lamina.errors import Outside
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import PODS, Kube

log = logging.getLogger(__name__)

RETRY = "lamina.dev/retry"
"""The annotation. Its value only has to differ from the one before."""
MOST_WAITING = 1000
"""The pods refused longest ago give way, as they may no longer exist; they wait for kube-scheduler's own next try."""


class WaitingPods:
    """By UID: the pods that the last filter call refused everywhere."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._names: dict[str, tuple[str, str, float]] = {}
        """Namespace, name, and when the pod was refused."""

    def observe(self, pod: ParsedPod, now: float, *, fits: bool) -> None:
        """kube-scheduler has tried the pod."""
        self._names.pop(pod.uid, None)
        if fits or not pod.uid:
            return
        self._names[pod.uid] = (pod.namespace, pod.name, now)
        if len(self._names) > MOST_WAITING:
            del self._names[next(iter(self._names))]

    async def retry(self, value: str, refused_since: float = float("-inf")) -> None:
        """Have those refused since then tried again."""
        await self._retry(value, {uid for uid, name in self._names.items() if name[2] >= refused_since})

    async def retry_pods(self, value: str, uids: Set[str]) -> None:
        """Have those of these pods tried again that were refused."""
        await self._retry(value, uids & self._names.keys())

    async def retry_in(self, value: str, namespaces: Set[str]) -> None:
        """Have those of these namespaces tried again."""
        await self._retry(value, {uid for uid, name in self._names.items() if name[0] in namespaces})

    async def _retry(self, value: str, uids: Set[str]) -> None:
        """A pod that is gone, or cannot be written, is left alone."""
        names = {uid: self._names[uid] for uid in uids}
        self._names = {uid: name for uid, name in self._names.items() if uid not in names}
        for uid, (namespace, name, _) in names.items():
            change = {"metadata": {"uid": uid, "annotations": {RETRY: value}}}
            try:
                await self._kube.patch(PODS, name, change, namespace=namespace)
            except Outside as error:
                log.info("Cannot have pod %s/%s tried again: %s", namespace, name, error)
