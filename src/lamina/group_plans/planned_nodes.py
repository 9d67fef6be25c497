"""HeldNodes with the members of a group that are planned there, and nothing else of these members."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from lamina.core.gpus import Gpu, Inventory
from lamina.core.ledger import NOTHING, Taken, add
from lamina.ledger.ledger import Ledger
from lamina.placement import NodeState, NodeTable
from lamina.placement.packing import bits


class HeldNodes(Protocol):
    """The nodes of a cluster, with what everybody holds there."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def table(self) -> NodeTable:
        """All nodes with an inventory."""

    def state_with(self, node: str, inventory: Inventory, taken: Mapping[str, Taken]) -> NodeState:
        """The state of the node with this much taken of its GPUs."""


class TakenGpu(NamedTuple):
    """A GPU, and what is taken of it."""

    gpu: Gpu
    taken: Taken

    def likeness(self) -> "TakenGpu":
        """Equal for GPUs that take the same requests for the same shares, unless a request names GPUs."""
        return TakenGpu(msgspec.structs.replace(self.gpu, uuid="", index=0), self.taken)


class PlannedNodes:
    """Changed by one search alone."""

    def __init__(self, nodes: HeldNodes) -> None:
        self._nodes = nodes
        self._planned: dict[str, dict[str, Mapping[str, Taken]]] = {}
        """By node and UID, what the planned members take there."""
        self._taken: dict[str, dict[str, Taken]] = {}
        """By node where members are planned, what is taken of its GPUs with them."""
        self._states: dict[str, NodeState] = {}

    def members(self, node: str) -> int:
        """How many members are planned on the node."""
        return len(self._planned.get(node, ()))

    def state(self, node: str) -> NodeState | None:
        """None where the node offers no GPUs."""
        inventory = self._nodes.ledger.inventory(node)
        if inventory is None or not self._planned.get(node):
            return self._nodes.table.state(node)
        if node not in self._states:
            self._states[node] = self._nodes.state_with(node, inventory, self._taken_on(node))
        return self._states[node]

    def gpus(self, node: str, gpus: int) -> list[TakenGpu]:
        """These GPUs (bits) of the node, with what is taken of each."""
        inventory = self._nodes.ledger.inventory(node)
        if inventory is None:
            return []
        taken, listed = self._taken_on(node), inventory.gpus
        chosen = [listed[index] for index in bits(gpus) if index < len(listed)]
        return [TakenGpu(gpu, taken.get(gpu.uuid, NOTHING)) for gpu in chosen]

    def state_of(self, node: str, gpus: Sequence[TakenGpu]) -> NodeState | None:
        """The node with these GPUs alone."""
        inventory = self._nodes.ledger.inventory(node)
        if inventory is None:
            return None
        some = msgspec.structs.replace(inventory, gpus=tuple(gpu for gpu, _ in gpus))
        return self._nodes.state_with(node, some, {gpu.uuid: taken for gpu, taken in gpus})

    def index_bits(self, node: str, taken: Mapping[str, Taken]) -> int:
        """The GPUs of which something is taken, as bits."""
        inventory = self._nodes.ledger.inventory(node)
        gpus = () if inventory is None else inventory.gpus
        return sum(1 << index for index, gpu in enumerate(gpus) if gpu.uuid in taken)

    def add(self, uid: str, node: str, taken: Mapping[str, Taken]) -> None:
        """Plan the member there."""
        self._planned.setdefault(node, {})[uid] = taken
        self._states.pop(node, None)
        if self._nodes.ledger.totals.holds(uid, node):
            self._taken.pop(node, None)  # what it holds already no longer counts
        elif node in self._taken:
            add(self._taken[node], taken)

    def remove(self, uid: str, node: str) -> None:
        """Undo `add`."""
        del self._planned[node][uid]
        self._states.pop(node, None)
        self._taken.pop(node, None)

    def _taken_on(self, node: str) -> Mapping[str, Taken]:
        planned = self._planned.get(node)
        if not planned:
            return self._nodes.ledger.totals.taken(node)
        if node not in self._taken:
            total = self._nodes.ledger.totals.taken_without_pods(node, planned.keys())
            for taken in planned.values():
                add(total, taken)
            self._taken[node] = total
        return self._taken[node]
