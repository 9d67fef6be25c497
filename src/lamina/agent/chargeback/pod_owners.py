"""Whose the pods of the node are: their workloads, and their values of the labels that have accounts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.core.workloads import UNKNOWN, Workload, workload_of
from lamina.ports.kube import Object


class PodOwner(NamedTuple):
    """`labels` has an empty value for a label that the pod does not have."""

    workload: Workload
    labels: Mapping[str, str]


NO_OWNER = PodOwner(UNKNOWN, {})


class PodOwners:
    """The owners of the pods that Kubernetes lists on the node."""

    def __init__(self, labels: Sequence[str] = ()) -> None:
        """`labels` are the labels that have accounts."""
        self._labels = labels
        self._known: dict[str, PodOwner] = {}

    def owner_of(self, pod: Object) -> PodOwner:
        values = pod["metadata"].get("labels") or {}
        return PodOwner(workload_of(pod), {label: str(values.get(label) or "") for label in self._labels})

    def observe(self, uid: str, owner: PodOwner) -> None:
        self._known[uid] = owner

    def observe_end(self, uid: str) -> None:
        """The pod is deleted or finished. The book of accounts still knows its workload while it holds something."""
        self._known.pop(uid, None)

    def get(self, uid: str) -> PodOwner:
        return self._known.get(uid, NO_OWNER)
