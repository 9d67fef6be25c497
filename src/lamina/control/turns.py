"""One after the other on each node: what makes it safe that two replicas may believe they lead.

Each node has a Lease, and each grant takes a turn: the grant is written, then the Lease is written anew with the
resourceVersion that was last known, and only then the pod is bound. The server accepts one writer per version. So
whose turn succeeds knows every grant whose turn came before: its own ones, and where somebody else had been there,
those that were read after his turn. Grants that were not written before a turn began have to take a later one, and
that fails for whoever has not read this one.

A turn costs one small write per grant. Turns of grants on one node that wait for the same one share the next. What
the Lease says is for people; its version is all that counts.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lamina.dialects.config import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.errors import NotYet
from lamina.ports.kube import LEASES, NODES, AlreadyExists, Conflict, Kube, NotFound, Object
from lamina.ports.kube.moments import rfc3339_micro

_TRIES = 5
_PREFIX = "node-"
_LONGEST = 253


@dataclass
class _Node:
    """One node's turns: `begun` and `done` are numbers of turns, `lease` the Lease as this replica left it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    lease: Object | None = None
    begun: int = 0
    done: int = 0


class Turns:
    """Takes turns in the name of one replica. `catch_up` reads all grants and pods of a node; `wall` is Unix time;
    `uid_of` tells a node's UID, empty where it is not known."""

    def __init__(
        self,
        kube: Kube,
        identity: str,
        *,
        catch_up: Callable[[str], Awaitable[None]],
        wall: Callable[[], float],
        uid_of: Callable[[str], str] = lambda node: "",
    ) -> None:
        self._kube = kube
        self._identity = identity
        self._catch_up = catch_up
        self._wall = wall
        self._uid_of = uid_of
        self._nodes: defaultdict[str, _Node] = defaultdict(_Node)

    async def take(self, node: str, check: Callable[[], None]) -> None:
        """Take a turn for a grant that is written already. `check` raises where it does not fit beside what is known.

        Raises what `check` raises, Outside, and NotYet where others take every turn. Then the grant has had no turn.
        """
        at = self._nodes[node]
        arrived = at.begun
        async with at.lock:
            for _ in range(_TRIES):
                if at.done > arrived or await self._turn(node, at, check):
                    check()
                    return
        raise NotYet(f"others place pods on node {node} at the same time")

    async def _turn(self, node: str, at: _Node, check: Callable[[], None]) -> bool:
        """Whether the turn was ours. After any failure nothing is known of the Lease."""
        lease, at.lease = at.lease, None
        if lease is None:
            lease = await self._read(node)
            await self._catch_up(node)
        check()
        at.begun += 1
        number = at.begun
        try:
            at.lease = await self._kube.replace(LEASES, self._written(lease))
        except (Conflict, NotFound):
            return False
        at.done = number
        return True

    async def _read(self, node: str) -> Object:
        name = lease_name(node)
        try:
            return await self._kube.get(LEASES, name, namespace=NAMESPACE)
        except NotFound:
            pass
        try:
            meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": self._owner(node)}
            return await self._kube.create(LEASES, self._written({"metadata": meta}))
        except AlreadyExists:
            return await self._kube.get(LEASES, name, namespace=NAMESPACE)

    def _owner(self, node: str) -> list[Object]:
        """The Lease goes with its node, or nodes that come and go would leave theirs behind."""
        uid = self._uid_of(node)
        return [{"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node, "uid": uid}] if uid else []

    def _written(self, lease: Object) -> Object:
        moment = rfc3339_micro(self._wall())
        return {"metadata": lease["metadata"], "spec": {"holderIdentity": self._identity, "renewTime": moment}}


def lease_name(node: str) -> str:
    """The name of a node's Lease; a name that would be too long is replaced by its digest."""
    if len(_PREFIX) + len(node) > _LONGEST:
        return _PREFIX + hashlib.sha256(node.encode()).hexdigest()
    return _PREFIX + node
