"""What nodes have free of CPU and memory: what they offer, less what pods ask that are bound there and have not ended.

kube-scheduler decides whether a pod fits there; this is for the policy alone, which asks what GPUs are still of use
beside the CPU and memory that are left.
"""

from collections.abc import Iterable

from lamina.model.host_size import HostSize

UNKNOWN = HostSize(128_000, 1_024_000)
"""What a node is taken to have free that nobody has told of."""


class HostRoom:
    """Sums by node, kept up to date pod by pod."""

    def __init__(self) -> None:
        self._offered: dict[str, HostSize] = {}
        self._taken: dict[str, HostSize] = {}
        self._pods: dict[str, tuple[str, HostSize]] = {}
        self._changed: set[str] = set()

    def node_seen(self, node: str, offered: HostSize) -> None:
        if self._offered.get(node) != offered:
            self._offered[node] = offered
            self._changed.add(node)

    def node_gone(self, node: str) -> None:
        if self._offered.pop(node, None) is not None:
            self._changed.add(node)

    def pod_seen(self, uid: str, node: str, size: HostSize) -> bool:
        """The pod is bound to the node. Returns whether that is news."""
        before = self._pods.get(uid)
        if before == (node, size):
            return False
        self.pod_gone(uid)
        self._pods[uid] = node, size
        self._add(node, size, 1)
        return before is None

    def pod_gone(self, uid: str) -> None:
        """The pod has ended, or is no more."""
        known = self._pods.pop(uid, None)
        if known is not None:
            self._add(*known, -1)

    def free(self, node: str) -> HostSize:
        """What is left; below 0 where pods were bound that do not fit."""
        offered, taken = self._offered.get(node), self._taken.get(node, HostSize())
        if offered is None:
            return UNKNOWN
        return HostSize(offered.cpu - taken.cpu, offered.memory_mib - taken.memory_mib)

    def changed(self) -> Iterable[str]:
        """The nodes that have changed since this was asked before."""
        changed, self._changed = self._changed, set()
        return changed

    def _add(self, node: str, size: HostSize, sign: int) -> None:
        taken = self._taken.get(node, HostSize())
        left = HostSize(taken.cpu + sign * size.cpu, taken.memory_mib + sign * size.memory_mib)
        if left == HostSize():
            self._taken.pop(node, None)
        else:
            self._taken[node] = left
        self._changed.add(node)
