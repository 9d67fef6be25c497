"""What pods hold that are deleted, or finished, while their processes may still run on a node.

The agent of the node knows whether processes run, and publishes these pods in its Inventory. A pod that ends while its
status says that containers run counts for a moment even so, until the agent has had the time to publish it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lamina.controller.ledger.holdings import HeldByNode
from lamina.model.ledger import taken_by
from lamina.model.survivors import Survivor

REPORT_S = 15.0
"""Agents watch the pods of their nodes and publish survivors at once. This is for slow nodes and API servers."""


class _Unreported(NamedTuple):
    held: HeldByNode
    until: float


class Survivors:
    """By UID of the pod. Times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._on_node: dict[str, dict[str, Survivor]] = {}
        self._published: dict[str, dict[str, Survivor]] = {}
        """The same by UID and node."""
        self._unreported: dict[str, _Unreported] = {}

    def publish(self, node: str, survivors: Iterable[Survivor]) -> list[Survivor]:
        """The agent of the node names these, and no others any more. Returns those that are new, changed or gone."""
        before, named = self._on_node.pop(node, {}), {survivor.pod_uid: survivor for survivor in survivors}
        if named:
            self._on_node[node] = named
        for uid in before.keys() - named.keys():
            del self._published[uid][node]
            if not self._published[uid]:
                del self._published[uid]
        for uid, survivor in named.items():
            self._published.setdefault(uid, {})[node] = survivor
            self._unreported.pop(uid, None)
        both = before | named
        return [survivor for uid, survivor in both.items() if before.get(uid) != named.get(uid)]

    def await_report(self, uid: str, held: HeldByNode, now: float) -> None:
        """The pod has ended, and its containers may still run."""
        if held and uid not in self._published:
            self._unreported[uid] = _Unreported(held, now + REPORT_S)

    def expire(self, now: float) -> list[str]:
        """Forget pods that no agent has published in time. Returns their UIDs."""
        late = [uid for uid, unreported in self._unreported.items() if unreported.until <= now]
        for uid in late:
            del self._unreported[uid]
        return late

    def held(self, uid: str) -> HeldByNode:
        """What the pod still holds."""
        if uid in self._unreported:
            return self._unreported[uid].held
        published = self._published.get(uid, {})
        return {node: taken_by(survivor.containers) for node, survivor in published.items()}
