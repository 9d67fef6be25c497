"""All nodes side by side: what `NodeState` says of each GPU, as columns, so that one question is asked of all at once.

A row is a node, a cell one of its GPUs. Each write stamps its row, so that a cache of answers asks again only for
the rows stamped since.
"""

from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lamina.core.gpus import Gpu, Mode
from lamina.placement.mig.partitions import Partitions, PartitionScheme
from lamina.placement.state.modes import MODES
from lamina.placement.state.node_names import NodeNames
from lamina.placement.state.nodes import GpuState, NodeState

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NUMBERS = (
    "free_slots",
    "free_memory",
    "free_cores",
    "capacity",
    "cores_capacity",
    "model",
    "uuid",
    "flags",
    "slots_taken",
    "scheme",
    "open",
    "partitions",
    "memory",
)
_MAX_UNUSED = 1000
"""Twice as many numbers as there are places for GPUs, and so many more, may be in use before they are given again."""
_PRESENT, _HEALTHY, _BUSY, _WHOLE, _CORDONED, _BY_GRANT = (1 << n for n in range(6))
_WITH_CORES, _WITHOUT_CORES, _ONE_ISOLATION = (1 << n for n in range(6, 9))
_MAY = {mode: 1 << n for n, mode in enumerate(MODES, 9)}
_KEPT = {mode: 1 << n for n, mode in enumerate(MODES, 9 + len(MODES))}
_KEPT_IN_ANY = sum(_KEPT.values())


_VARYING: dict[str, Any] = {"uuid": "", "index": 0, "instances": ()}
"""What no sentence tells of a GPU."""


class Columns:
    """Cells of some rows, by what they tell; each has the shape (rows, most GPUs of a node).

    `model`, `uuid`, `scheme` and `partitions` are numbers that the table gave them; `scheme` is 0 where a GPU cannot be
    partitioned, and `open` are the profiles of which one more instance has a place, as bits in the scheme's order.
    """

    def __init__(self, cells: Ints) -> None:
        self.cells = cells
        self.free_slots, self.free_memory, self.free_cores = cells[0], cells[1], cells[2]
        self.capacity, self.cores_capacity = cells[3], cells[4]
        self.model, self.uuid = cells[5], cells[6]
        self.slots_taken = cells[8]
        self.scheme, self.open = cells[9], cells[10]
        self.memory = cells[12]

    @property
    def present(self) -> Bools:
        return self._flag(_PRESENT)

    @property
    def healthy(self) -> Bools:
        return self._flag(_HEALTHY)

    @property
    def busy(self) -> Bools:
        return self._flag(_BUSY)

    @property
    def whole(self) -> Bools:
        """A container has the whole GPU."""
        return self._flag(_WHOLE)

    @property
    def cordoned(self) -> Bools:
        return self._flag(_CORDONED)

    @property
    def by_grant(self) -> Bools:
        """New shares of the GPU may be granted."""
        return self._flag(_BY_GRANT)

    @property
    def with_cores(self) -> Bools:
        """A container has a compute limit."""
        return self._flag(_WITH_CORES)

    @property
    def without_cores(self) -> Bools:
        """A container has no compute limit."""
        return self._flag(_WITHOUT_CORES)

    @property
    def one_isolation(self) -> Bools:
        """A container shares the GPU only with containers of its isolation mode."""
        return self._flag(_ONE_ISOLATION)

    def may(self, mode: Mode) -> Bools:
        """The node allows the mode."""
        return self._flag(_MAY[mode])

    def kept(self, mode: Mode) -> Bools:
        """Who is on the GPU keeps it in the mode."""
        return self._flag(_KEPT[mode])

    def kept_in_another(self, mode: Mode) -> Bools:
        """Who is on the GPU keeps it in another mode."""
        return self._flag(_KEPT_IN_ANY & ~_KEPT[mode])

    def _flag(self, bit: int) -> Bools:
        found: Bools = (self.cells[7] & bit) != 0
        return found


class NodeTable:
    """Nodes by row. A row that is given up is taken by the next new node."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.states: list[NodeState | None] = []
        self.numbering = 0
        """How often all numbers were given again. Those from before mean something else."""
        self._start_numbers()
        self.stamp = 0
        """The number of the last write."""
        self.stamps: Ints = np.zeros(0, np.int64)
        self.kinds: Ints = np.zeros(0, np.int64)
        """Nodes with the same hardware, cell by cell, have the same kind; -1 where the row has no node."""
        self.usage: NDArray[np.float64] = np.zeros(0)
        self._cells: Ints = np.zeros((len(_NUMBERS), 0, 1), np.int64)
        self._spare: list[int] = []
        self._layout = 0
        """How often a node got or lost its row."""

    def put(self, state: NodeState) -> None:
        """The node as it is now."""
        if self.numbers > 2 * len(self.rows) * self._cells.shape[2] + _MAX_UNUSED:
            self._renumber()
        self._put(state)

    def _put(self, state: NodeState) -> None:
        row = self.rows.get(state.name)
        if row is None:
            row = self._new_row(state.name)
        width = len(state.gpus)
        if width > self._cells.shape[2]:
            self._resize(self._cells.shape[1], width)
        self._cells[:, row, :] = 0
        if width:
            self._cells[:, row, :width] = np.array([self._cell(gpu) for gpu in state.gpus], np.int64).T
        self.states[row] = state
        self.kinds[row] = self._kind(state)
        self.usage[row] = state.usage
        self._stamp(row)

    def drop(self, node: str) -> None:
        """The node offers nothing any more."""
        row = self.rows.pop(node, None)
        if row is not None:
            self._layout += 1
            self.states[row] = None
            self._cells[:, row, :] = 0
            self.kinds[row] = -1
            self._spare.append(row)
            self._stamp(row)

    @property
    def shape(self) -> tuple[int, int]:
        """Room for so many rows, and the most GPUs of a node."""
        return self._cells.shape[1], self._cells.shape[2]

    @property
    def largest_mib(self) -> int:
        """The most that may be granted of one GPU."""
        return int(self._cells[_NUMBERS.index("capacity")].max(initial=0))

    @property
    def partitioned(self) -> bool:
        """Whether some GPU can be partitioned, or could be."""
        return len(self.schemes) > 1

    def state(self, node: str) -> NodeState | None:
        row = self.rows.get(node)
        return None if row is None else self.states[row]

    def since(self, stamp: int) -> Ints:
        """The rows written after `stamp`."""
        return np.flatnonzero(self.stamps > stamp)

    def rows_of(self, nodes: Sequence[str]) -> Ints:
        """The row of each node, -1 where it has none."""
        if not isinstance(nodes, NodeNames):
            return self._look_up(nodes)
        if nodes.rows is None or nodes.rows[:3] != (self, self._layout, len(nodes)):
            self._keep(nodes, self._look_up(nodes))
        rows: Ints = nodes.rows[3]
        return rows

    def choose(self, nodes: Sequence[str], rows: Ints, chosen: Bools) -> NodeNames:
        """The chosen ones of the nodes, whose rows are `rows`; the same list for the same choice as far as possible."""
        if not isinstance(nodes, NodeNames):
            return self._chosen(nodes, rows, chosen)
        if chosen.all():
            return nodes
        key = chosen.tobytes()
        names = nodes.chosen(key)
        if names is None:
            names = self._chosen(nodes, rows, chosen)
            nodes.keep_chosen(key, names)
        return names

    def _chosen(self, nodes: Sequence[str], rows: Ints, chosen: Bools) -> NodeNames:
        names = NodeNames(compress(nodes, chosen.tolist()))
        self._keep(names, rows[chosen])
        return names

    def _look_up(self, nodes: Sequence[str]) -> Ints:
        return np.fromiter(map(self.rows.get, nodes, repeat(-1)), np.int64, len(nodes))

    def _keep(self, nodes: NodeNames, rows: Ints) -> None:
        nodes.rows = self, self._layout, len(nodes), rows

    def columns(self, rows: Ints) -> Columns:
        return Columns(self._cells[:, rows, :])

    @property
    def numbers(self) -> int:
        """How many values have a number, of the property with the most values."""
        return max(len(self.models), len(self.uuids), len(self.schemes), len(self._partitions), len(self._kinds))

    def _start_numbers(self) -> None:
        self.models: dict[str, int] = {"": 0}
        self.uuids: dict[str, int] = {"": 0}
        self.schemes: dict[PartitionScheme | None, int] = {None: 0}
        self._partitions: dict[Partitions | None, int] = {None: 0}
        self._kinds: dict[tuple[tuple[Gpu, PartitionScheme | None], ...], int] = {}
        self.uniform: list[bool] = []
        """By kind: whether all GPUs of such a node are alike but for their place and connections."""

    def _renumber(self) -> None:
        """Number only what nodes have now: GPUs, instances and nodes come and go for as long as the process runs."""
        self.numbering += 1
        self._start_numbers()
        for state in self.states:
            if state is not None:
                self._put(state)

    def _cell(self, state: GpuState) -> tuple[int, ...]:
        gpu = state.gpu
        flags = _PRESENT | _HEALTHY * gpu.healthy | _BUSY * state.busy | _WHOLE * state.taken.whole
        taken = state.taken
        flags |= _CORDONED * gpu.cordoned | _BY_GRANT * gpu.by_grant | _WITH_CORES * (taken.cores > 0)
        flags |= _WITHOUT_CORES * taken.without_cores | _ONE_ISOLATION * taken.one_isolation
        for mode in state.modes:
            flags |= _MAY[mode]
        if state.kept is not None:
            flags |= _KEPT[state.kept]
        model = self.models.setdefault(gpu.model, len(self.models))
        uuid = self.uuids.setdefault(gpu.uuid, len(self.uuids))
        free = (state.free_slots, state.free_memory, state.free_cores)
        whole = (gpu.capacity_mib, gpu.cores_capacity, model, uuid, flags, taken.slots)
        if state.partitions is None:
            return (*free, *whole, 0, 0, 0, gpu.memory_mib)
        scheme = self.schemes.setdefault(state.partitions.scheme, len(self.schemes))
        partitions = self._partitions.setdefault(state.partitions, len(self._partitions))
        return (*free, *whole, scheme, state.partitions.open, partitions, gpu.memory_mib)

    def _kind(self, state: NodeState) -> int:
        schemes = [None if each.partitions is None else each.partitions.scheme for each in state.gpus]
        gpus = [msgspec.structs.replace(each.gpu, **_VARYING) for each in state.gpus]
        hardware = tuple(zip(gpus, schemes, strict=True))
        kind = self._kinds.get(hardware)
        if kind is None:
            kind = self._kinds[hardware] = len(self.uniform)
            alike = {(msgspec.structs.replace(gpu, numa=None, links=()), scheme) for gpu, scheme in hardware}
            self.uniform.append(len(alike) <= 1)
        return kind

    def _new_row(self, node: str) -> int:
        if self._spare:
            row = self._spare.pop()
        else:
            row = len(self.states)
            self.states.append(None)
            if row >= len(self.stamps):
                self._resize(max(64, 2 * row), self._cells.shape[2])
        self.rows[node] = row
        self._layout += 1
        return row

    def _resize(self, rows: int, width: int) -> None:
        _, old_rows, old_width = self._cells.shape
        cells = np.zeros((len(_NUMBERS), rows, width), np.int64)
        cells[:, :old_rows, :old_width] = self._cells
        self._cells = cells
        more = rows - old_rows
        self.stamps, self.usage = _longer(self.stamps, more, 0), _longer(self.usage, more, 0.0)
        self.kinds = _longer(self.kinds, more, -1)

    def _stamp(self, row: int) -> None:
        self.stamp += 1
        self.stamps[row] = self.stamp


def _longer(column: NDArray[Any], more: int, value: float) -> NDArray[Any]:
    return np.concatenate([column, np.full(more, value, column.dtype)])
