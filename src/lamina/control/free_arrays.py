"""The cluster's free capacity as the packing core reads it: the rows of the node table, and CPU and memory beside."""

import numpy as np

from lamina.control.capacity import Capacity
from lamina.control.host_room import UNKNOWN
from lamina.model.gpus import Mode
from lamina.model.host_size import HostSize
from lamina.model.requests import PodRequest
from lamina.placement.modes import accepted
from lamina.placement.packing import MOST_GPUS, REFUSED, Ask, Cluster
from lamina.placement.packing.cluster import Longs

_Kind = tuple[str, int, int]
"""Model, MiB that may be granted, percent of time that may be granted."""


class FreeArrays:
    """`cluster` is replaced where it has grown or kinds of GPUs are new; `version` counts the latter."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._kinds: dict[_Kind, int] = {("", 1, 1): 0}  # the arrays want one kind even where there is no GPU
        self._stamp = 0
        self.version = 0
        self.cluster = self._made((0, 1))

    def refresh(self) -> Longs | None:
        """Bring the arrays up to date. Returns the rows that changed, or None where the arrays are new ones."""
        table = self._capacity.table
        rows = table.since(self._stamp)
        hosts = [row for node in self._capacity.host.changed() if (row := table.rows.get(node)) is not None]
        if not rows.size and not hosts:
            return rows
        self._stamp, known = table.stamp, len(self._kinds)
        grown = (table.shape[0], min(table.shape[1], MOST_GPUS)) != self.cluster.kind.shape
        self._note_kinds(rows)
        if grown or len(self._kinds) > known:
            self.version += len(self._kinds) > known
            self.cluster = self._made(table.shape)
            self._write(np.arange(len(table.states)))
            return None
        rows = np.union1d(rows, np.array(hosts, np.int64))
        self._write(rows)
        return rows

    def ask(self, request: PodRequest | None, size: HostSize) -> Ask | None:
        """The request in the arrays' terms, where they have them: one container, without a wish for single GPUs or
        for one that is cut."""
        if request is None:
            return Ask(size.cpu, size.memory_mib, 0, (0,) * len(self._kinds), 0)
        wishes = request.wishes
        of_gpus = wishes.uuids or wishes.not_uuids or not accepted((Mode.QUOTA,), wishes)
        if len(request.containers) != 1 or of_gpus:
            return None
        [container] = request.containers
        memory = []
        for model, capacity, cores in self._kinds:
            wanted = not wishes.types or any(part.lower() in model.lower() for part in wishes.types)
            wanted &= not any(part.lower() in model.lower() for part in wishes.not_types)
            needed = container.memory_on(capacity)
            memory.append(needed if wanted and needed <= capacity and container.cores <= cores else REFUSED)
        return Ask(size.cpu, size.memory_mib, container.count, tuple(memory), container.cores)

    def _made(self, shape: tuple[int, int]) -> Cluster:
        rows, width = shape[0], min(shape[1], MOST_GPUS)
        full = [np.array([kind[place] for kind in self._kinds], np.int32) for place in (1, 2)]
        zeros = [np.zeros((rows, width), np.int32) for _ in range(3)]
        cpu, memory = np.full(rows, UNKNOWN.cpu, np.int64), np.full(rows, UNKNOWN.memory_mib, np.int64)
        return Cluster(cpu, memory, np.full((rows, width), -1, np.int32), *zeros, *full)

    def _note_kinds(self, rows: Longs) -> None:
        columns = self._capacity.table.columns(rows)
        there = columns.present & (columns.capacity > 0) & (columns.cores_capacity > 0)
        cells = np.stack([part[there] for part in (columns.model, columns.capacity, columns.cores_capacity)], axis=1)
        models = list(self._capacity.table.models)
        for model, capacity, cores in np.unique(cells, axis=0).tolist():
            self._kinds.setdefault((models[model], capacity, cores), len(self._kinds))

    def _write(self, rows: Longs) -> None:
        table, cluster, width = self._capacity.table, self.cluster, self.cluster.kind.shape[1]
        columns = table.columns(rows)
        numbers = {(table.models[model], *room): kind for (model, *room), kind in self._kinds.items()}
        cells = np.stack([columns.model, columns.capacity, columns.cores_capacity], axis=2)[:, :width]
        distinct, which = np.unique(cells.reshape(-1, 3), axis=0, return_inverse=True)
        kinds = np.array([numbers.get(tuple(each), -1) for each in distinct.tolist()], np.int32)
        kind = kinds[which].reshape(cells.shape[:2])
        shared = columns.may_share & ~columns.kept_cut
        free = (columns.healthy & ~columns.cordoned & columns.by_grant & shared & ~columns.whole)[:, :width] & (
            kind >= 0
        )
        cluster.kind[rows] = np.where(columns.present[:, :width], np.maximum(kind, 0), -1)
        cluster.gpu_memory[rows] = columns.free_memory[:, :width] * free
        cluster.gpu_cores[rows] = columns.free_cores[:, :width] * free
        cluster.slots[rows] = columns.free_slots[:, :width] * free
        for row in rows.tolist():
            state = table.states[row]
            room = UNKNOWN if state is None else self._capacity.host.free(state.name)
            cluster.cpu[row], cluster.memory[row] = room
