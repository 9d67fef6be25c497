"""Writes what is free on each node into the status of its Inventory, so that `kubectl get inventories` shows it, and
which survivors are known to have had a grant there, so that a controller that starts later knows it too.

One write changes one node, and binding pods matters more: a round writes only so many, those that wait longest first,
and only a few while more change than it could write.
"""

import logging
from collections.abc import Collection, Mapping

import msgspec

from lamina.api.v1alpha1.inventory_status import MAX_HOLDS, HeldRoom, InventoryStatus
from lamina.controller.capacity.node_states import Capacity
from lamina.controller.ledger.claims import Claim
from lamina.errors import Outside
from lamina.model.gpus import Gpu
from lamina.model.ledger import Taken
from lamina.placement import NodeState
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, NotFound, Object

log = logging.getLogger(__name__)

EVERY_S = 2.0
MOST_WRITES = 20
"""Per round, which is at most ten in a second."""
WRITES_WHEN_BUSY = 5
"""Per round in which more than MOST_WRITES statuses came to differ: many pods are placed now."""

_Known = tuple[tuple[str, ...], tuple[HeldRoom, ...]]
"""Survivors and holds."""


class InventoryStatuses:
    """The statuses of all Inventories. `observed` are those that the API server has, by node."""

    def __init__(self, kube: Kube, capacity: Capacity, observed: Mapping[str, Object], clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._held_before: set[tuple[str, str]] = set()
        """UIDs and nodes of the room that was held at the last call. Most is held for a moment, and not written."""
        self._capacity = capacity
        self._observed = observed
        self._waiting: dict[str, None] = {}
        """The nodes whose status differs, in the order in which that was found."""
        self._computed: dict[str, tuple[NodeState | None, _Known, Object]] = {}
        """By node, from which state and what else the status was computed last, and the status."""
        self._refused: dict[str, tuple[Object, Object | None]] = {}
        """By node, the status that could not be written because there is no place for it, and what was observed."""
        self._warned = False

    async def step(self) -> None:
        """Write statuses that differ. What cannot be written is tried again at the next call."""
        wanted = self._wanted()
        differing = {node for node, status in wanted.items() if self._observed.get(node) != status}
        differing -= self._without_place(wanted, differing)
        busy = len(differing - self._waiting.keys()) > MOST_WRITES
        self._waiting = {node: None for node in (*self._waiting, *sorted(differing)) if node in differing}
        for node in list(self._waiting)[: WRITES_WHEN_BUSY if busy else MOST_WRITES]:
            try:
                gone = dict.fromkeys(self._observed.get(node, {}).keys() - wanted[node].keys())
                await self._kube.patch(INVENTORIES, node, {"status": gone | wanted[node]}, subresource="status")
            except NotFound:
                self._refused[node] = wanted[node], self._observed.get(node)
            except Outside as error:
                log.warning("Cannot update the status of the Inventory of node %s: %s", node, error)
                return
            self._waiting.pop(node, None)

    def _without_place(self, wanted: Mapping[str, Object], differing: Collection[str]) -> set[str]:
        """Nodes whose Inventories are there, but not their statuses: an older definition has none. Each is tried again
        when its status changes."""
        self._refused = {
            node: (status, observed)
            for node, (status, observed) in self._refused.items()
            if node in differing and (wanted[node], self._observed.get(node)) == (status, observed)
        }
        if self._refused and not self._warned:
            self._warned = True
            log.warning(
                "Inventories have no status here, so that `kubectl get inventories` does not show what is free: their "
                "CustomResourceDefinition is of an older version. Apply that of this version"
            )
        return set(self._refused)

    def _wanted(self) -> dict[str, Object]:
        table = self._capacity.table
        holds = self._holds()
        self._computed = {node: self._compute(node, table.state(node), holds.get(node, ())) for node in self._observed}
        return {node: status for node, (_, _, status) in self._computed.items()}

    def _compute(
        self, node: str, state: NodeState | None, holds: tuple[HeldRoom, ...]
    ) -> tuple[NodeState | None, _Known, Object]:
        before, known = self._computed.get(node), (self._capacity.ledger.confirmed_survivors(node), holds)
        if before is not None and before[0] is state and before[1] == known:
            return before
        wanted = msgspec.structs.replace(status_of(state, known[0]), holds=holds)
        status: Object = msgspec.json.decode(msgspec.json.encode(wanted))
        if not holds:
            del status["holds"]  # an older definition has no place for it
        return state, known, status

    def _holds(self) -> dict[str, tuple[HeldRoom, ...]]:
        """The room that has been held since the last call, by node."""
        now, found = [*self._capacity.ledger.holds()], dict[str, tuple[HeldRoom, ...]]()
        offset = self._clock.wall() - self._clock.monotonic()
        for uid, claim, reservation in now:
            if (uid, reservation.node) in self._held_before:
                rooms = (
                    _held_room(uid, claim, gpu, taken, int(reservation.until + offset))
                    for gpu, taken in reservation.taken.items()
                )
                found[reservation.node] = (*found.get(reservation.node, ()), *rooms)[:MAX_HOLDS]
        self._held_before = {(uid, reservation.node) for uid, _, reservation in now}
        return found


def _held_room(uid: str, claim: Claim, gpu: str, taken: Taken, until: int) -> HeldRoom:
    return HeldRoom(
        namespace=claim.namespace,
        pod=claim.pod,
        pod_uid=uid,
        gpu=gpu,
        memory_mib=taken.memory_mib,
        cores=taken.cores,
        slots=taken.slots,
        whole=taken.whole,
        mps=taken.mps,
        until=until,
    )


def status_of(state: NodeState | None, survivors: tuple[str, ...] = ()) -> InventoryStatus:
    """What new shares may have of a node, which is nothing where the node takes no shares, and what is confirmed."""
    gpus = [each for each in (state.gpus if state else ()) if _takes_shares(each.gpu)]
    memory = [each.shareable_memory for each in gpus]
    return InventoryStatus(
        free_memory_mib=sum(memory),
        free_cores=sum(each.shareable_cores for each in gpus),
        largest_free_mib=max(memory, default=0),
        survivors=survivors,
    )


def _takes_shares(gpu: Gpu) -> bool:
    return gpu.healthy and not gpu.cordoned and gpu.by_grant
