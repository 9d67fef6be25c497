"""Turns, which make it safe that two replicas may both believe that they lead.

One Lease orders the binds of all replicas, and each grant takes a turn on it:

1. The grant is written.
2. The Lease is replaced with the resourceVersion that this replica knows. The API server accepts one writer for each
   version, so if another replica had a turn in between, this one fails and is tried again.
3. The pod is bound.

An epoch is a time in which only this replica had turns, as far as it knows. It begins with reading the Lease. Before a
bind counts on a turn, it reads the grants and pods of its node once in that epoch, and of its namespace where quotas
limit GPUs, unless its watches have reported everything that was written before the epoch, see `write_barrier`. So a
replica whose turn succeeds knows every grant there whose turn came before: its own, and those of other replicas, which
it read after their turn. A grant that was not yet written then takes a later turn, and that turn fails for a replica
that has not begun another epoch, in which it reads this grant.

Grants that wait at the same time share the next turn, whatever their nodes, and turns keep a distance. So a grant
costs one small write when it comes alone, and a fraction of one when many come. The contents of the Lease are for
people. Only its version counts.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lamina.controller.observation.write_barrier import WriteBarrier
from lamina.core.component_names import TURNS_LEASE
from lamina.errors import NotYet
from lamina.ports.clock import Clock
from lamina.ports.kube import LEASES, AlreadyExists, Conflict, Kube, NotFound, Object, Resource
from lamina.ports.kube.moments import rfc3339_micro

DISTANCE_S = 0.1
"""From the beginning of a turn to the next one. kube-scheduler goes on while a bind waits."""
MAX_SCOPES = 1 << 14
"""Nodes and namespaces of which this replica remembers that it has read them, so that those that are gone are
forgotten some time."""
_TRIES = 5


CatchUp = Callable[[str], Awaitable[None]]
"""Reads all grants and pods of a node, or of a namespace."""


@dataclass
class _Scope:
    """A node or a namespace, read in this epoch for the last time."""

    name: str
    catch_up: CatchUp
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    epoch: int = 0


class PlacementLease:
    """Takes turns in the name of one replica."""

    def __init__(
        self,
        kube: Kube,
        clock: Clock,
        identity: str,
        *,
        catch_up: CatchUp,
        catch_up_namespace: CatchUp,
        writes: WriteBarrier | None = None,
        distance_s: float = 0.0,
    ) -> None:
        """`writes` know what the watches have reported; without them, each node and namespace is read."""
        self._kube = kube
        self._clock = clock
        self._identity = identity
        self._catch_up, self._catch_up_namespace = catch_up, catch_up_namespace
        self._writes = writes or WriteBarrier()
        self._distance_s = distance_s
        self._lock = asyncio.Lock()
        self._lease: Object | None = None
        """As this replica left it; None outside of an epoch."""
        self._epoch = 0
        self._begun = 0
        self._done = 0
        """The numbers of the last turn that began, and of the last one that succeeded."""
        self._next = float("-inf")
        """When the next turn may begin."""
        self._scopes: OrderedDict[tuple[CatchUp, str], _Scope] = OrderedDict()
        """Those of the last turn at the end."""

    async def take(self, node: str, check: Callable[[], None], *, namespace: str = "") -> None:
        """Take a turn for a grant on a node that is written already. `check` raises where it does not fit.

        With `namespace`, what the pods of this namespace hold counts too. Raises what `check` raises, Outside, and
        NotYet where other replicas take every turn. Then the grant had none.
        """
        scopes = [self._scope(self._catch_up, node)]
        if namespace:
            scopes.append(self._scope(self._catch_up_namespace, namespace))
        begun_before = self._begun
        for _ in range(_TRIES):
            await self._begin_epoch()
            for scope in scopes:
                await self._read(scope)
            check()
            await self._turn(begun_before)
            if self._done > begun_before and all(scope.epoch == self._epoch for scope in scopes):
                check()
                return
        raise NotYet(f"other replicas place pods on node {node} at the same time")

    def begin_write(self, resource: Resource, name: str) -> None:
        """This replica is about to write a grant or the binding of a pod, named by its namespace and name."""
        self._writes.begin(resource, name, self._epoch)

    def end_write(self, resource: Resource, name: str, written: str) -> None:
        """The API server has accepted it: a grant with this UID, or a pod's binding to this node."""
        self._writes.succeeded(resource, name, written)

    @property
    def remembered(self) -> int:
        """How many nodes and namespaces this replica remembers."""
        return len(self._scopes)

    def _scope(self, catch_up: CatchUp, name: str) -> _Scope:
        """One that was forgotten is read before its next turn, so forgetting it is safe at any time."""
        key = catch_up, name
        scope = self._scopes.pop(key, None) or _Scope(name, catch_up)
        self._scopes[key] = scope
        if len(self._scopes) > MAX_SCOPES:
            self._scopes.popitem(last=False)
        return scope

    async def _begin_epoch(self) -> None:
        """Read the Lease, unless this replica had the last turn as far as it knows."""
        async with self._lock:
            if self._lease is None:
                self._lease = await self._read_or_create()
                self._epoch += 1

    async def _read(self, scope: _Scope) -> None:
        """Read it, unless it was read in this epoch: everything that is read was there after the epoch began."""
        async with scope.lock:
            epoch = self._epoch
            if scope.epoch != epoch:
                if not self._writes.reached(epoch):
                    await scope.catch_up(scope.name)
                scope.epoch = epoch

    async def _turn(self, begun_before: int) -> None:
        """Have a turn, unless one succeeded that began after `begun_before`. After any failure the epoch is over."""
        async with self._lock:
            if self._done > begun_before or self._lease is None:
                return
            if (wait := self._next - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait)
            lease, self._lease = self._lease, None
            self._begun += 1
            number = self._begun
            self._next = self._clock.monotonic() + self._distance_s
            try:
                self._lease = await self._kube.replace(LEASES, self._renewed(lease))
            except (Conflict, NotFound):
                return
            self._done = number

    async def _read_or_create(self) -> Object:
        try:
            return await self._kube.get(LEASES, TURNS_LEASE, namespace=self._kube.lamina_namespace)
        except NotFound:
            pass
        try:
            return await self._kube.create(
                LEASES, self._renewed({"metadata": {"name": TURNS_LEASE, "namespace": self._kube.lamina_namespace}})
            )
        except AlreadyExists:
            return await self._kube.get(LEASES, TURNS_LEASE, namespace=self._kube.lamina_namespace)

    def _renewed(self, lease: Object) -> Object:
        now = rfc3339_micro(self._clock.wall())
        return {"metadata": lease["metadata"], "spec": {"holderIdentity": self._identity, "renewTime": now}}
