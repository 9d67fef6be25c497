"""What is known of each pod that waits for a node: one record per pod, from its first report or try until it has one.

kube-scheduler sends the same pod to filter and to prioritize, and then has it bound. What the watch reported need not
be parsed or read again. Only the watch says what a pod requests: what a caller of the extender sends must not decide
what is granted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lamina.configuration import Config
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import Object

MAX_PODS = 10_000
"""Of those that the watch has not reported, the one tried longest ago gives way: it may no longer exist."""
MAX_REPORTED = 1000
"""Further pods are parsed and read whenever they are needed."""
MAX_REFUSED_S = 900.0
"""kube-scheduler tries a pending pod again within five minutes. One that is no longer retried is no longer pending."""
_MAX_POD = 16 * 2**10
"""Bytes as JSON, so that all of them together stay small whatever tenants write."""


@dataclass
class PendingPod:
    """`reported` is the pod as the watch last reported it; the rest says how kube-scheduler's tries ended."""

    uid: str
    namespace: str
    name: str
    reported: ParsedPod | None = None
    cause: str = ""
    """Why the last try failed on every node; empty where it did not."""
    refused_since: float = 0.0
    refused_at: float = 0.0
    """When the first and the last of these tries were."""
    waits: bool = False
    """Whether kube-scheduler may have to be asked for another try: it was not since the last one failed."""
    place_found: bool = False
    """Whether the pod's group has had a place for it since."""
    sent_to_one: bool = False
    """Whether the last answer had one node alone, and no bind has followed."""
    ungrouped: bool = False
    """Whether the pod passed the filter and belongs to no group, so that its binding need not look for one."""

    def refused(self, now: float) -> bool:
        """Whether kube-scheduler still tries the pod, without success."""
        return bool(self.cause) and now - self.refused_at <= MAX_REFUSED_S


class PendingPods:
    """By UID."""

    def __init__(self) -> None:
        self._pods: dict[str, PendingPod] = {}
        """The one tried longest ago first."""
        self._reported = 0
        self._nominated: dict[str, str] = {}

    @property
    def nominated(self) -> Mapping[str, str]:
        """By UID of pods for which others were evicted, the node where they are to get the room."""
        return self._nominated

    def observe(self, pod: ParsedPod) -> None:
        """The watch reports that the pod waits for a node, and is not being deleted."""
        small = {key: value for key, value in pod.metadata.items() if key != "managedFields"}
        obj = {**pod.obj, "metadata": small}
        full = self._reported >= MAX_REPORTED and self._reported_as(pod.uid) is None
        self.unread(pod.uid)
        if full or pod.request is None or len(msgspec.json.encode(obj)) > _MAX_POD:
            return
        known = self._pods.setdefault(pod.uid, PendingPod(pod.uid, pod.namespace, pod.name))
        known.reported = ParsedPod.of_parts(obj, pod.config, pod.request, "", pod.host_size, pod.ticket_holders)
        self._reported += 1
        if node := pod.nominated_node:
            self._nominated[pod.uid] = node

    def unread(self, uid: str) -> None:
        """What the watch reported of the pod is not kept."""
        if self._reported_as(uid) is not None:
            self._pods[uid].reported = None
            self._reported -= 1
            self._nominated.pop(uid, None)
            self._trim()

    def forget(self, uid: str) -> None:
        """The pod has a node, has ended, is being deleted or is gone."""
        self.unread(uid)
        self._pods.pop(uid, None)

    def tried(self, pod: ParsedPod) -> PendingPod:
        """The record of a pod that kube-scheduler tries now. Nothing is kept of one that does not exist yet."""
        known = self._pods.pop(pod.uid, None) or PendingPod(pod.uid, pod.namespace, pod.name)
        if pod.uid:
            self._pods[pod.uid] = known
            self._trim()
        return known

    def observe_try(self, pod: ParsedPod, cause: str, now: float) -> None:
        """How it ended: `cause` is empty where the pod fits some node."""
        known = self.tried(pod)
        if cause:
            known.refused_since = known.refused_since if known.refused(now) else now
            known.refused_at = now
        known.cause, known.waits, known.place_found = cause, bool(cause), False

    def of(self, uid: str) -> PendingPod | None:
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[PendingPod]:
        return iter(self._pods.values())

    def pod(self, uid: str, config: Config) -> ParsedPod | None:
        """The pod as it was last reported, if it was parsed under this configuration."""
        pod = self._reported_as(uid)
        return pod if pod is not None and pod.config is config else None

    def same(self, obj: Object, config: Config) -> ParsedPod | None:
        """The pod if this version of it was parsed under this configuration."""
        metadata = obj.get("metadata") or {}
        pod = self.pod(str(metadata.get("uid") or ""), config)
        version = metadata.get("resourceVersion")
        return pod if pod is not None and version and pod.version == version else None

    def _trim(self) -> None:
        if len(self._pods) - self._reported > MAX_PODS:
            del self._pods[next(uid for uid, each in self._pods.items() if each.reported is None)]

    def _reported_as(self, uid: str) -> ParsedPod | None:
        known = self._pods.get(uid)
        return known.reported if known is not None else None


class RefusedPods(NamedTuple):
    """The pods of one namespace that one cause keeps pending, and how long the first of them has been."""

    pods: int
    longest_s: float


def refused_pods(pending: Iterable[PendingPod], now: float) -> Mapping[tuple[str, str], RefusedPods]:
    """By namespace and cause."""
    found: dict[tuple[str, str], RefusedPods] = {}
    for pod in pending:
        if pod.refused(now):
            key = pod.namespace, pod.cause
            pods, longest_s = found.get(key, (0, 0.0))
            found[key] = RefusedPods(pods + 1, max(longest_s, now - pod.refused_since))
    return found
