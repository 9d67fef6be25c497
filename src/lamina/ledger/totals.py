"""The sums of the ledger: what is held of every node's GPUs and in every namespace, and which pods hold it."""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import NamedTuple

from lamina.core.claims import HeldClaim
from lamina.core.ledger import NOTHING, Taken, add, amounts, taken_by_claims

HeldByNode = Mapping[str, Mapping[str, Taken]]
"""What one pod holds, by node and by UUID of the GPU."""


class _Holder(NamedTuple):
    namespace: str
    held: HeldByNode


_NO_HOLDER = _Holder("", {})


class Totals:
    """Updated pod by pod. `changed` is called with each node of which more or less is held than before."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._pods: dict[str, _Holder] = {}
        self._on_node: dict[str, set[str]] = {}
        """By node, the UIDs of the pods that hold something there."""
        self._totals: dict[str, dict[str, Taken]] = {}
        """By node, computed when first needed after a change."""
        self._in_namespace: dict[str, Taken] = {}
        self._claimed: dict[str, dict[str, Taken]] = {}
        """By node and namespace, what ResourceClaims hold."""

    def update(self, uid: str, namespace: str, held: HeldByNode) -> None:
        """The pod now holds this, and no longer what it held before."""
        known = self._pods.get(uid, _NO_HOLDER)
        before = known.held
        if held:
            self._pods[uid] = _Holder(namespace, held)
        else:
            self._pods.pop(uid, None)
        if held == before and (not held or namespace == known.namespace):
            return
        self._in_namespace[known.namespace] = self._in_namespace.get(known.namespace, NOTHING).less(_sum(before))
        self._in_namespace[namespace] = self._in_namespace.get(namespace, NOTHING).plus(_sum(held))
        for node in before.keys() | held.keys():
            if before.get(node) != held.get(node):
                self._update_node(node, uid, holds=node in held)

    def update_claims(self, node: str, claims: Iterable[HeldClaim]) -> None:
        """These ResourceClaims hold parts of the node now. They count in namespaces only: their GPUs take no grants."""
        by_namespace: dict[str, list[HeldClaim]] = {}
        for claim in claims:
            by_namespace.setdefault(claim.namespace, []).append(claim)
        now = {name: amounts(taken_by_claims(held).values()) for name, held in by_namespace.items()}
        before = self._claimed.pop(node, {})
        for name in before.keys() | now.keys():
            total = self._in_namespace.get(name, NOTHING)
            self._in_namespace[name] = total.less(before.get(name, NOTHING)).plus(now.get(name, NOTHING))
        if now:
            self._claimed[node] = now

    def of(self, uid: str) -> HeldByNode:
        """What the pod holds."""
        return self._pods.get(uid, _NO_HOLDER).held

    def holds(self, uid: str, node: str) -> bool:
        """Whether the pod holds anything on the node."""
        return uid in self._on_node.get(node, ())

    def pods_on(self, node: str) -> Iterable[str]:
        """The pods that hold something on the node."""
        return tuple(self._on_node.get(node, ()))

    def nodes_of(self, uid: str) -> Iterable[str]:
        """The nodes on which the pod holds something."""
        return self.of(uid).keys()

    def taken(self, node: str, *, without: str = "") -> Mapping[str, Taken]:
        """What is taken of the node's GPUs, by UUID, without what the pod with the UID `without` holds."""
        if self.holds(without, node):
            return self.taken_without_pods(node, {without})
        totals = self._totals.get(node)
        if totals is None:
            totals = self._totals[node] = self.taken_without_pods(node, frozenset())
        return totals

    def taken_without_pods(self, node: str, pods: Set[str]) -> dict[str, Taken]:
        """What would be taken of the node's GPUs if the pods with these UIDs held nothing."""
        return self._sums(node, (uid for uid in self._on_node.get(node, ()) if uid not in pods))

    def taken_of_pods(self, node: str, pods: Set[str]) -> dict[str, Taken]:
        """What the pods with these UIDs hold of the node's GPUs, by UUID."""
        return self._sums(node, (uid for uid in self._on_node.get(node, ()) if uid in pods))

    def _sums(self, node: str, pods: Iterable[str]) -> dict[str, Taken]:
        totals: dict[str, Taken] = {}
        for uid in pods:
            add(totals, self._pods[uid].held[node])
        return totals

    def taken_in_namespace(self, namespace: str, *, without: str = "") -> Taken:
        """What the pods and ResourceClaims of one namespace hold, summed over all GPUs."""
        total = self._in_namespace.get(namespace, NOTHING)
        holder = self._pods.get(without, _NO_HOLDER)
        return total.less(_sum(holder.held)) if holder.namespace == namespace else total

    def _update_node(self, node: str, uid: str, *, holds: bool) -> None:
        holders = self._on_node.setdefault(node, set())
        if holds:
            holders.add(uid)
        else:
            holders.discard(uid)
            if not holders:
                del self._on_node[node]
        self._totals.pop(node, None)
        self._changed(node)


def _sum(held: HeldByNode) -> Taken:
    """The amounts over all nodes and GPUs."""
    return amounts(taken for gpus in held.values() for taken in gpus.values())
