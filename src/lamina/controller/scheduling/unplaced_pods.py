"""Pods that the leader last refused on every node: how many, why, and for how long."""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.ledger.pods import ParsedPod

MOST_UNPLACED = 10_000
"""The pods refused first give way, so that no number of pods takes more memory."""
FORGOTTEN_AFTER_S = 900.0
"""kube-scheduler tries a pending pod again within five minutes. One that it does not try any more is not pending."""


class _Unplaced(NamedTuple):
    namespace: str
    cause: str
    since: float
    last: float


class UnplacedGroup(NamedTuple):
    """The pods of one namespace that one cause keeps pending, and how long the first of them has been."""

    pods: int
    longest_s: float


class UnplacedPods:
    """By UID, with the time of the first refusal and the cause of the last one."""

    def __init__(self) -> None:
        self._pods: dict[str, _Unplaced] = {}

    def observe(self, pod: ParsedPod, cause: str, now: float) -> None:
        """kube-scheduler has tried the pod. `cause` is empty where it fits."""
        if not cause:
            self.forget(pod.uid)
        elif pod.uid:
            before = self._pods.get(pod.uid)
            self._pods[pod.uid] = _Unplaced(pod.namespace, cause, before.since if before else now, now)
            if len(self._pods) > MOST_UNPLACED:
                del self._pods[next(iter(self._pods))]

    def forget(self, uid: str) -> None:
        """The pod has a node, has ended, or is gone."""
        self._pods.pop(uid, None)

    def groups(self, now: float) -> Mapping[tuple[str, str], UnplacedGroup]:
        """By namespace and cause."""
        self._pods = {uid: pod for uid, pod in self._pods.items() if now - pod.last <= FORGOTTEN_AFTER_S}
        found: dict[tuple[str, str], UnplacedGroup] = {}
        for pod in self._pods.values():
            key = pod.namespace, pod.cause
            pods, longest_s = found.get(key, (0, 0.0))
            found[key] = UnplacedGroup(pods + 1, max(longest_s, now - pod.since))
        return found
