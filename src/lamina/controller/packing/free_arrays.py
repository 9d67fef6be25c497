"""The free capacity of the cluster as arrays for the packing core: the node table's rows, with CPU and memory."""

import numpy as np

from lamina.controller.capacity.cluster_state import ClusterState
from lamina.core.gpus import Mode
from lamina.core.host_size import UNKNOWN_HOST, HostSize
from lamina.core.requests import PodRequest
from lamina.placement.packing import MAX_GPUS, NO_GPU, Ask, Cluster, GpuKind, ask_of
from lamina.placement.packing.cluster import Longs


class FreeArrays:
    """`cluster` is replaced when it has grown or there are new kinds of GPUs; `version` counts the latter."""

    def __init__(self, cluster_state: ClusterState) -> None:
        self._cluster_state = cluster_state
        self._kinds: dict[GpuKind, int] = {NO_GPU: 0}
        self._hardware: set[int] = set()
        """Numbers that the table gave to nodes of one hardware, all of whose kinds of GPUs are in `_kinds`."""
        self._numbering = 0
        self._stamp = 0
        self.version = 0
        self.cluster = self._new_cluster((0, 1))

    def refresh(self) -> Longs | None:
        """Update the arrays. Returns the rows that changed, or None where the arrays are new."""
        table = self._cluster_state.table
        rows = table.since(self._stamp)
        hosts = [row for node in self._cluster_state.host.pop_changed() if (row := table.rows.get(node)) is not None]
        if not rows.size and not hosts:
            return rows
        self._stamp = table.stamp
        grown = (table.shape[0], min(table.shape[1], MAX_GPUS)) != self.cluster.kind.shape
        everything = np.arange(len(table.states))
        new_kinds = self._has_new_kinds(rows)
        if new_kinds:  # those that are gone give way
            self._kinds = {kind: number for number, kind in enumerate([NO_GPU, *sorted(self._kinds_in(everything))])}
            self._hardware = set(table.kinds[everything].tolist())
        if grown or new_kinds:
            self.version += new_kinds
            self.cluster = self._new_cluster(table.shape)
            self._write(everything)
            return None
        rows = np.union1d(rows, np.array(hosts, np.int64))
        self._write(rows)
        return rows

    def ask(self, request: PodRequest | None, size: HostSize) -> Ask | None:
        """The request in the arrays' terms, or None where they cannot express it."""
        return ask_of(request, size, self._kinds)

    def _new_cluster(self, shape: tuple[int, int]) -> Cluster:
        rows, width = shape[0], min(shape[1], MAX_GPUS)
        full = [np.array([kind[field] for kind in self._kinds], np.int32) for field in (1, 2)]
        zeros = [np.zeros((rows, width), np.int32) for _ in range(3)]
        cpu, memory = np.full(rows, UNKNOWN_HOST.cpu, np.int64), np.full(rows, UNKNOWN_HOST.memory_mib, np.int64)
        return Cluster(cpu, memory, np.full((rows, width), -1, np.int32), *zeros, *full)

    def _has_new_kinds(self, rows: Longs) -> bool:
        table = self._cluster_state.table
        if self._numbering != table.numbering:
            self._numbering, self._hardware = table.numbering, set()
        hardware = set(table.kinds[rows].tolist())
        if hardware <= self._hardware:
            return False
        self._hardware |= hardware
        return not self._kinds.keys() >= self._kinds_in(rows)

    def _kinds_in(self, rows: Longs) -> set[GpuKind]:
        columns = self._cluster_state.table.columns(rows)
        usable = columns.present & (columns.capacity > 0) & (columns.cores_capacity > 0)
        cells = np.stack([part[usable] for part in (columns.model, columns.capacity, columns.cores_capacity)], axis=1)
        models = list(self._cluster_state.table.models)
        return {(models[model], *amounts) for model, *amounts in np.unique(cells, axis=0).tolist()} - {NO_GPU}

    def _write(self, rows: Longs) -> None:
        table, cluster, width = self._cluster_state.table, self.cluster, self.cluster.kind.shape[1]
        columns = table.columns(rows)
        kind = np.full((len(rows), width), -1, np.int32)
        for (model, capacity, cores), number in self._kinds.items():
            same = (columns.capacity == capacity) & (columns.cores_capacity == cores)
            kind[(same & (columns.model == table.models.get(model, -1)))[:, :width]] = number
        may_share = columns.may(Mode.QUOTA) | columns.may(Mode.MPS)
        shared = may_share & ~columns.kept(Mode.MIG) & ~columns.whole
        open_to_grants = columns.healthy & ~columns.cordoned & columns.by_grant
        free = (open_to_grants & shared)[:, :width] & (kind >= 0)
        cluster.kind[rows] = np.where(columns.present[:, :width], np.maximum(kind, 0), -1)
        cluster.gpu_memory[rows] = columns.free_memory[:, :width] * free
        cluster.gpu_cores[rows] = columns.free_cores[:, :width] * free
        cluster.slots[rows] = columns.free_slots[:, :width] * free
        for row in rows.tolist():
            state = table.states[row]
            host = UNKNOWN_HOST if state is None else self._cluster_state.host.free(state.name)
            cluster.cpu[row], cluster.memory[row] = host.clamped()
