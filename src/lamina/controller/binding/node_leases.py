"""Turns on a node, which make it safe that two replicas may both believe that they lead.

Each node has a Lease, and each grant takes a turn on it:

1. The grant is written.
2. The Lease is replaced with the resourceVersion that this replica knows. The API server accepts one writer for each
   version, so if another replica had a turn in between, this one fails, reads the node's grants and pods, and tries
   again.
3. The pod is bound.

A replica whose turn succeeds therefore knows every grant whose turn came before: its own, and those of other replicas,
which it read after their turn. A grant that was not yet written then takes a later turn, and that turn fails for a
replica that has not read this grant.

A turn costs one small write per grant; grants on one node that wait for the same turn share the next one. The contents
of the Lease are for people. Only its version counts.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lamina.configuration import CONFIG_MAP_NAMESPACE as NAMESPACE
from lamina.errors import NotYet
from lamina.ports.clock import Clock
from lamina.ports.kube import LEASES, NODES, AlreadyExists, Conflict, Kube, NotFound, Object
from lamina.ports.kube.moments import rfc3339_micro

MOST_NODES = 1 << 14
"""Nodes of which this replica remembers its Lease, so that nodes that are gone are forgotten some time."""
_TRIES = 5
_PREFIX = "node-"
_LONGEST_NAME = 253


@dataclass
class _Node:
    """One node's turns: `begun` and `done` number the turns, `lease` is the Lease as this replica left it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    lease: Object | None = None
    begun: int = 0
    done: int = 0


class NodeLeases:
    """Takes turns in the name of one replica.

    `catch_up` reads all grants and pods of a node; `uid_of` returns a node's UID, empty where it is not known.
    """

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        identity: str,
        *,
        catch_up: Callable[[str], Awaitable[None]],
        uid_of: Callable[[str], str] = lambda node: "",
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._identity = identity
        self._catch_up = catch_up
        self._uid_of = uid_of
        self._nodes: OrderedDict[str, _Node] = OrderedDict()
        """The node of the last turn at the end."""

    async def take_turn(self, name: str, check: Callable[[], None]) -> None:
        """Take a turn for a grant that is written already. `check` raises where it does not fit what is known.

        Raises what `check` raises, Outside, and NotYet where other replicas take every turn. Then the grant had none.
        """
        node = self._node(name)
        begun_before = node.begun
        async with node.lock:
            for _ in range(_TRIES):
                if node.done > begun_before or await self._try_turn(name, node, check):
                    check()
                    return
        raise NotYet(f"other replicas place pods on node {name} at the same time")

    @property
    def remembered(self) -> int:
        """How many nodes' Leases this replica remembers."""
        return len(self._nodes)

    def _node(self, name: str) -> _Node:
        """A turn on a node that was forgotten begins by reading the node, so forgetting one is safe at any time."""
        node = self._nodes.pop(name, None) or _Node()
        self._nodes[name] = node
        if len(self._nodes) > MOST_NODES:
            self._nodes.popitem(last=False)
        return node

    async def _try_turn(self, name: str, node: _Node, check: Callable[[], None]) -> bool:
        """Whether the turn succeeded. After any failure the version of the Lease is not known."""
        lease, node.lease = node.lease, None
        if lease is None:
            lease = await self._read_or_create(name)
            await self._catch_up(name)
        check()
        node.begun += 1
        number = node.begun
        try:
            node.lease = await self._kube.replace(LEASES, self._renewed(lease))
        except (Conflict, NotFound):
            return False
        node.done = number
        return True

    async def _read_or_create(self, node: str) -> Object:
        name = lease_name(node)
        try:
            return await self._kube.get(LEASES, name, namespace=NAMESPACE)
        except NotFound:
            pass
        try:
            metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": self._owners(node)}
            return await self._kube.create(LEASES, self._renewed({"metadata": metadata}))
        except AlreadyExists:
            return await self._kube.get(LEASES, name, namespace=NAMESPACE)

    def _owners(self, node: str) -> list[Object]:
        """The node, so that the Lease is garbage collected with it."""
        uid = self._uid_of(node)
        return [{"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node, "uid": uid}] if uid else []

    def _renewed(self, lease: Object) -> Object:
        now = rfc3339_micro(self._clock.wall())
        return {"metadata": lease["metadata"], "spec": {"holderIdentity": self._identity, "renewTime": now}}


def lease_name(node: str) -> str:
    """The name of a node's Lease. A name that would be too long is replaced by its digest."""
    if len(_PREFIX) + len(node) > _LONGEST_NAME:
        return _PREFIX + hashlib.sha256(node.encode()).hexdigest()
    return _PREFIX + node
