"""Writes what is free on each node into the status of its Inventory, so that `kubectl get inventories` shows it, and
which survivors are known to have had a grant there, so that a controller that starts later knows it too.

One write changes one node, and binding pods matters more: a round writes only so many, those that wait longest first,
and only a few while more change than it could write.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from lamina.controller.capacity.cluster_state import ClusterState
from lamina.core.gpus import Gpu
from lamina.core.inventory_status import MAX_HOLDS, HeldRoom, InventoryStatus
from lamina.core.ledger import add
from lamina.errors import Outside
from lamina.ledger.holds import Hold, Why
from lamina.placement import NodeState
from lamina.ports.clock import Clock
from lamina.ports.kube import INVENTORIES, Kube, NotFound, Object

log = logging.getLogger(__name__)

EVERY_S = 2.0
MAX_WRITES = 20
"""Per round, which is at most ten in a second."""
WRITES_WHEN_BUSY = 5
"""Per round in which more than MAX_WRITES statuses came to differ: many pods are placed now."""

_Known = tuple[tuple[str, ...], tuple[Hold, ...], tuple[Gpu, ...]]
"""Survivors, holds and the GPUs of the node."""
_Computed = tuple[NodeState | None, _Known, Object]
"""From which state and what else a status was computed, and the status."""


class InventoryStatuses:
    """The statuses of all Inventories. `observed` are those that the API server has, by node, and `nominated` tells
    what is held for pods that others leave for."""

    def __init__(
        self,
        kube: Kube,
        cluster_state: ClusterState,
        observed: Mapping[str, Object],
        clock: Clock,
        nominated: Callable[[], Iterable[Hold]],
    ) -> None:
        self._kube = kube
        self._nominated = nominated
        self._clock = clock
        self._held_before: set[tuple[str, str]] = set()
        """UIDs and nodes of the room that was held at the last call. Most is held for a moment, and not written."""
        self._cluster_state = cluster_state
        self._observed = observed
        self._waiting: dict[str, None] = {}
        """The nodes whose status differs, in the order in which that was found."""
        self._computed: dict[str, _Computed] = {}
        """By node, what was computed last."""
        self._refused: dict[str, tuple[Object, Object | None]] = {}
        """By node, the status that could not be written because there is no place for it, and what was observed."""
        self._warned = False

    async def step(self) -> None:
        """Write statuses that differ. What cannot be written is tried again at the next call."""
        wanted = self._wanted()
        differing = {node for node, status in wanted.items() if self._observed.get(node) != status}
        differing -= self._without_place(wanted, differing)
        busy = len(differing - self._waiting.keys()) > MAX_WRITES
        self._waiting = {node: None for node in (*self._waiting, *sorted(differing)) if node in differing}
        for node in list(self._waiting)[: WRITES_WHEN_BUSY if busy else MAX_WRITES]:
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
        holds = self._holds()
        self._computed = {node: self._compute(node, tuple(holds.get(node, ()))) for node in self._observed}
        return {node: status for node, (_, _, status) in self._computed.items()}

    def _compute(self, node: str, holds: tuple[Hold, ...]) -> _Computed:
        state = self._cluster_state.table.state(node)
        ledger = self._cluster_state.ledger
        inventory = ledger.inventory(node)
        gpus = () if inventory is None else inventory.gpus
        before, known = self._computed.get(node), (ledger.confirmed_survivors(node), holds, gpus)
        if before is not None and before[0] is state and before[1] == known:
            return before
        offset = self._clock.wall() - self._clock.monotonic()
        rooms = [room for each in holds for room in _held_rooms(each, offset)]
        status = status_of(self._with_uncounted(node, state, holds), gpus, known[0])
        wanted = msgspec.structs.replace(status, holds=tuple(rooms[:MAX_HOLDS]))
        encoded: Object = msgspec.json.decode(msgspec.json.encode(wanted))
        if not holds:
            del encoded["holds"]  # an older definition has no place for it
        return state, known, encoded

    def _with_uncounted(self, node: str, state: NodeState | None, holds: tuple[Hold, ...]) -> NodeState | None:
        ledger = self._cluster_state.ledger
        inventory, uncounted = ledger.inventory(node), [hold.uncounted for hold in holds if hold.uncounted]
        if state is None or inventory is None or not uncounted:
            return state
        taken = dict(ledger.totals.taken(node))
        for more in uncounted:
            add(taken, more)
        return self._cluster_state.state_with(node, inventory, taken)

    def _holds(self) -> dict[str, list[Hold]]:
        """The room that has been held since the last call, and that is held for pods which others leave for."""
        now, found = [*self._cluster_state.ledger.holds()], dict[str, list[Hold]]()
        lasting = (each for each in now if (each.uid, each.node) in self._held_before)
        for hold in (*lasting, *self._nominated()):
            found.setdefault(hold.node, []).append(hold)
        self._held_before = {(each.uid, each.node) for each in now}
        return found


def _held_rooms(hold: Hold, offset: float) -> Iterator[HeldRoom]:
    """By GPU. `offset` is the difference of the wall clock to the monotonic one."""
    for gpu, taken in hold.taken.items():
        yield HeldRoom(
            namespace=hold.namespace,
            pod=hold.pod,
            pod_uid=hold.uid,
            gpu=gpu,
            memory_mib=taken.memory_mib,
            cores=taken.cores,
            slots=taken.slots,
            whole=taken.whole,
            mps=taken.mps,
            until=None if math.isinf(hold.until) else int(hold.until + offset),
            nominated=hold.why is Why.NOMINATION,
        )


def status_of(state: NodeState | None, of_node: Sequence[Gpu], survivors: tuple[str, ...] = ()) -> InventoryStatus:
    """What a node with these GPUs has, what new shares may have of it, which is nothing where the node takes no shares,
    and what is confirmed."""
    gpus = [each for each in (state.gpus if state else ()) if _takes_shares(each.gpu)]
    memory = [each.shareable_memory for each in gpus]
    models = Counter(gpu.model for gpu in of_node)
    return InventoryStatus(
        models=", ".join(f"{number} x {model}" for model, number in models.items()),
        memory_mib=sum(gpu.memory_mib for gpu in of_node),
        free_memory_mib=sum(memory),
        free_cores=sum(each.shareable_cores for each in gpus),
        largest_free_mib=max(memory, default=0),
        survivors=survivors,
    )


def _takes_shares(gpu: Gpu) -> bool:
    return gpu.healthy and not gpu.cordoned and gpu.by_grant
