"""Free CPU and memory of nodes: what a node offers, less the requests of the pods bound there that have not ended.

kube-scheduler decides whether a pod fits the CPU and memory of a node. These figures serve the packing policy,
which asks what GPUs are still worth given the CPU and memory that are left on their node, and evictions for groups.
A pod counts from the answer that decides its node, because the next pods are decided before its bind is reported.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from lamina.core.host_size import UNKNOWN_HOST, HostSize


class _Pod(NamedTuple):
    node: str
    size: HostSize
    bound: bool
    """A watch has reported it there; else its bind is expected."""


class HostCapacity:
    """Sums by node, updated pod by pod."""

    def __init__(self) -> None:
        self._offered: dict[str, HostSize] = {}
        self._taken: dict[str, HostSize] = {}
        self._pods: dict[str, _Pod] = {}
        self._changed: set[str] = set()

    def observe_node(self, node: str, offered: HostSize) -> None:
        if self._offered.get(node) != offered:
            self._offered[node] = offered
            self._changed.add(node)

    def remove_node(self, node: str) -> None:
        if self._offered.pop(node, None) is not None:
            self._changed.add(node)

    def observe_pod(self, uid: str, node: str, size: HostSize) -> bool:
        """The pod is bound to the node. Returns whether it was not known before."""
        before = self._pods.get(uid)
        self._count(uid, _Pod(node, size, bound=True))
        return before is None or not before.bound

    def assume_pod(self, uid: str, node: str, size: HostSize) -> None:
        """The pod will probably be bound to the node."""
        known = self._pods.get(uid)
        if uid and (known is None or not known.bound):
            self._count(uid, _Pod(node, size, bound=False))

    def withdraw_pod(self, uid: str) -> None:
        """The pod is no longer assumed to be bound."""
        if uid in self._pods and not self._pods[uid].bound:
            self.remove_pod(uid)

    def remove_pod(self, uid: str) -> None:
        """The pod has ended or is deleted."""
        known = self._pods.pop(uid, None)
        if known is not None:
            self._add(known.node, known.size, -1)

    def free(self, node: str, *, without: Collection[str] = ()) -> HostSize:
        """What is left without the pods with these UIDs; below 0 where pods were bound that do not fit."""
        offered, taken = self._offered.get(node), self._taken.get(node, HostSize())
        if offered is None:
            return UNKNOWN_HOST
        gone = [pod.size for uid in without if (pod := self._pods.get(uid)) and pod.node == node]
        cpu = offered.cpu - taken.cpu + sum(size.cpu for size in gone)
        return HostSize(cpu, offered.memory_mib - taken.memory_mib + sum(size.memory_mib for size in gone))

    def pop_changed(self) -> Iterable[str]:
        """The nodes that have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def _count(self, uid: str, pod: _Pod) -> None:
        known = self._pods.get(uid)
        if known is None or (known.node, known.size) != (pod.node, pod.size):
            self.remove_pod(uid)
            self._add(pod.node, pod.size, 1)
        self._pods[uid] = pod

    def _add(self, node: str, size: HostSize, sign: int) -> None:
        before = self._taken.get(node, HostSize())
        taken = HostSize(before.cpu + sign * size.cpu, before.memory_mib + sign * size.memory_mib)
        if taken == HostSize():
            self._taken.pop(node, None)
        else:
            self._taken[node] = taken
        self._changed.add(node)
