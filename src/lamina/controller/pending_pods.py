"""Pods that wait for a node, parsed, as the watch last reported them.

kube-scheduler sends the same pod to filter and to prioritize, and then has it bound. What the watch reported need not
be parsed or read again. Only the watch adds pods: what a caller of the extender sends must not decide what is granted.
"""

from collections.abc import Mapping

import msgspec

from lamina.configuration import Config
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import Object

MOST_PODS = 1000
"""Further pods are parsed and read whenever they are needed."""
_LARGEST_POD = 16 * 2**10
"""Bytes as JSON, so that all of them together stay small whatever tenants write."""


class PendingPods:
    """By UID."""

    def __init__(self) -> None:
        self._pods: dict[str, ParsedPod] = {}
        self._nominated: dict[str, str] = {}

    @property
    def nominated(self) -> Mapping[str, str]:
        """By UID of pods for which others were evicted, the node where they are to get the room."""
        return self._nominated

    def observe(self, pod: ParsedPod) -> None:
        """The pod waits for a node, and is not being deleted."""
        small = {key: value for key, value in pod.metadata.items() if key != "managedFields"}
        obj = {**pod.obj, "metadata": small}
        full = len(self._pods) >= MOST_PODS and pod.uid not in self._pods
        if full or pod.request is None or len(msgspec.json.encode(obj)) > _LARGEST_POD:
            self.forget(pod.uid)
        else:
            self._pods[pod.uid] = ParsedPod.of_parts(
                obj, pod.config, pod.request, "", pod.host_size, pod.ticket_holders
            )
            self._nominated.pop(pod.uid, None)
            if node := pod.nominated_node:
                self._nominated[pod.uid] = node

    def forget(self, uid: str) -> None:
        """The pod has a node, is being deleted or gone, or cannot be read."""
        self._pods.pop(uid, None)
        self._nominated.pop(uid, None)

    def all(self) -> tuple[ParsedPod, ...]:
        """The pods that wait now, as far as they are kept."""
        return tuple(self._pods.values())

    def pod(self, uid: str, config: Config) -> ParsedPod | None:
        """The pod as it was last reported, if it was parsed under this configuration."""
        pod = self._pods.get(uid)
        return pod if pod is not None and pod.config is config else None

    def same(self, obj: Object, config: Config) -> ParsedPod | None:
        """The pod if this version of it was parsed under this configuration."""
        metadata = obj.get("metadata") or {}
        pod = self.pod(str(metadata.get("uid") or ""), config)
        version = metadata.get("resourceVersion")
        return pod if pod is not None and version and pod.version == version else None
