"""What pods hold that are deleted, or finished, while their processes may still run on a node.

The agent of the node knows whether processes run, and publishes these pods in its Inventory. A pod that ends while its
status says that containers run counts for a moment even so, until the agent has had the time to publish it.

An agent speaks for its own node. So what it publishes counts on its own GPUs, up to what the pod held there, and in a
namespace only if the pod is known to have held something there: from the ledger, or after a restart from what the
controller wrote into the status of the Inventory. What it publishes of a pod that Kubernetes has elsewhere is nothing.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lamina.core.ledger import Taken, taken_by
from lamina.core.survivors import Survivor
from lamina.ledger.totals import HeldByNode

REPORT_S = 15.0
"""Agents watch the pods of their nodes and publish survivors at once. This is for slow nodes and API servers."""
REMEMBERED_S = 600.0
"""How long it is remembered what a pod held at its end, unless an agent publishes it."""


class _Ended(NamedTuple):
    """What a pod held when it ended, and until when that counts although no agent has published the pod."""

    namespace: str
    held: HeldByNode
    since: float
    until: float


class LingeringPods:
    """By UID of the pod. Times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._on_node: dict[str, dict[str, Survivor]] = {}
        self._published: dict[str, dict[str, Survivor]] = {}
        """The same by UID and node."""
        self._ended: dict[str, _Ended] = {}
        self._confirmed: dict[str, frozenset[str]] = {}
        """By node, those in the status of its Inventory."""

    def publish(self, node: str, survivors: Iterable[Survivor], confirmed: Iterable[str] = ()) -> list[Survivor]:
        """The agent of the node names these, and no others any more. Returns those that are new, changed or gone."""
        before, named = self._on_node.pop(node, {}), {survivor.pod_uid: survivor for survivor in survivors}
        known, self._confirmed[node] = self._confirmed.pop(node, frozenset()), frozenset(confirmed)
        if named:
            self._on_node[node] = named
        for uid in before.keys() - named.keys():
            del self._published[uid][node]
            if not self._published[uid]:
                del self._published[uid]
        for uid, survivor in named.items():
            self._published.setdefault(uid, {})[node] = survivor
            ended = self._ended.get(uid)
            if ended is not None and node in ended.held:
                self._ended[uid] = ended._replace(until=0.0)
        if not self._confirmed[node]:
            del self._confirmed[node]
        newly = known ^ frozenset(confirmed)
        both = before | named
        return [
            survivor for uid, survivor in both.items() if before.get(uid) != named.get(uid) or _key(survivor) in newly
        ]

    def end(self, uid: str, namespace: str, held: HeldByNode, now: float, *, stopped: bool) -> None:
        """The pod has ended and held this; whether its containers had `stopped`."""
        if held:
            reported = stopped or any(node in held for node in self._published.get(uid, {}))
            self._ended[uid] = _Ended(namespace, held, now, 0.0 if reported else now + REPORT_S)

    def expire(self, now: float) -> list[str]:
        """Forget pods that no agent has published in time. Returns the UIDs of those that had counted until now."""
        late = [uid for uid, ended in self._ended.items() if 0 < ended.until <= now]
        for uid in late:
            self._ended[uid] = self._ended[uid]._replace(until=0.0)
        for uid in [uid for uid, ended in self._ended.items() if ended.since + REMEMBERED_S <= now]:
            if uid not in self._published:
                del self._ended[uid]
        return late

    def held(self, uid: str) -> HeldByNode:
        """What the pod still holds."""
        ended = self._ended.get(uid)
        if ended is not None and ended.until:
            return ended.held
        published = self._published.get(uid, {})
        if ended is not None:
            known = {node: each for node, each in published.items() if node in ended.held}
            return {node: _at_most(taken_by(each.containers), ended.held[node]) for node, each in known.items()}
        confirmed = {node: each for node, each in published.items() if self._is_confirmed(node, each)}
        return {node: taken_by(each.containers) for node, each in (confirmed or published).items()}

    def namespace(self, uid: str) -> str:
        """The namespace in which the pod counts; empty where only agents say that there was such a pod."""
        if (ended := self._ended.get(uid)) is not None:
            return ended.namespace
        published = self._published.get(uid, {}).items()
        return next((each.namespace for node, each in published if self._is_confirmed(node, each)), "")

    def confirmed(self, node: str) -> tuple[str, ...]:
        """Those on the node that count in a namespace, as <namespace>/<UID>."""
        return tuple(sorted(_key(each) for each in self._on_node.get(node, {}).values() if self._is_known(node, each)))

    def _is_known(self, node: str, survivor: Survivor) -> bool:
        """Whether the pod has held something on the node."""
        ended = self._ended.get(survivor.pod_uid)
        if ended is None:
            return self._is_confirmed(node, survivor)
        return node in ended.held and ended.namespace == survivor.namespace

    def _is_confirmed(self, node: str, survivor: Survivor) -> bool:
        return _key(survivor) in self._confirmed.get(node, ())

    def named_on(self, node: str) -> Iterable[Survivor]:
        """What the agent of the node publishes."""
        return self._on_node.get(node, {}).values()


def _key(survivor: Survivor) -> str:
    return f"{survivor.namespace}/{survivor.pod_uid}"


def _at_most(said: Mapping[str, Taken], held: Mapping[str, Taken]) -> dict[str, Taken]:
    """What is said, by GPU, up to what was held."""
    return {
        gpu: taken._replace(
            slots=min(taken.slots, held[gpu].slots),
            memory_mib=min(taken.memory_mib, held[gpu].memory_mib),
            cores=min(taken.cores, held[gpu].cores),
        )
        for gpu, taken in said.items()
        if gpu in held
    }
