"""The cluster while pods come and go: what is free, where a pod fits, what is stranded."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lamina.core.ledger import NOTHING, Taken
from lamina.core.requests import GpuSelector, PodRequest
from lamina.placement import FITS, NodeState, NodeTable, Survey, alike
from lamina.placement.rules.refusal_arrays import TAKES, codes
from lamina.simulation.workload import SimNode, SimPod

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_TYPICAL = 0.95
"""Part of the pods with GPUs whose kinds are looked at for what is stranded, the most frequent first."""


class ClusterCapacity:
    """Nodes by row, in the order given. `cpu` and `memory` are what is free; `gpus` is how many GPUs there are."""

    def __init__(self, nodes: Sequence[SimNode]) -> None:
        self.nodes = nodes
        self.table = NodeTable()
        self.cpu = np.array([node.cpu for node in nodes], np.int64)
        self.memory = np.array([node.memory_mib for node in nodes], np.int64)
        self.gpus = sum(len(node.gpus) for node in nodes)
        self._taken: list[dict[str, Taken]] = [{} for _ in nodes]
        self._surveys: dict[PodRequest, Survey] = {}
        self._free = np.zeros(len(nodes))
        for row in range(len(nodes)):
            self._changed(row)

    @property
    def allocated(self) -> float:
        """The allocated part of all GPUs: of each the larger of its memory's and its time's."""
        return 1.0 - float(self._free.sum()) / max(1, self.gpus)

    def state(self, row: int) -> NodeState:
        state = self.table.states[row]
        assert state is not None, "every row has a node"
        return state

    def fits(self, pod: SimPod) -> Bools:
        """On which nodes the pod fits."""
        able: Bools = (self.cpu >= pod.cpu) & (self.memory >= pod.memory_mib)
        if pod.request is not None:
            able &= self.survey(pod.request).verdicts_on(np.arange(len(self.nodes))) == FITS
        return able

    def survey(self, request: PodRequest) -> Survey:
        kind = alike(request)
        survey = self._surveys.get(kind) or self._surveys.setdefault(kind, Survey(kind, self.table))
        survey.refresh()
        return survey

    def take(self, row: int, pod: SimPod, taken: dict[str, Taken], sign: int = 1) -> None:
        """Count the pod on the node, or with `sign` -1 no longer."""
        self.cpu[row] -= sign * pod.cpu
        self.memory[row] -= sign * pod.memory_mib
        held = self._taken[row]
        for uuid, more in taken.items():
            before = held.get(uuid, NOTHING)
            held[uuid] = before.plus(more) if sign > 0 else _less(before, more)
        if taken:
            self._changed(row)

    def stranded(self, pods: Sequence[SimPod]) -> float:
        """The part of the free GPU capacity that the usual pods among `pods` cannot use, weighed by how many they are.

        FGD's measure, by our own rules: all that is free on a node that does not take the pod, and what is free on GPUs
        that do not, on one that does.
        """
        free = self._free_parts()
        total = free.sum()
        if total <= 0:
            return 0.0
        kinds = Counter((alike(pod.request), pod.cpu, pod.memory_mib) for pod in pods if pod.request is not None)
        weight = lost = 0.0
        columns = self.table.columns(np.arange(len(self.nodes)))
        for (request, cpu, memory), count in kinds.most_common():
            if weight >= _TYPICAL * kinds.total():
                break
            selector = None if request.selector == GpuSelector() else request.selector
            usable = codes(request.containers[0], selector, self.table, columns) == TAKES
            usable &= self.fits(SimPod(name="", cpu=cpu, memory_mib=memory, request=request))[:, None]
            lost += count * float(free[~usable].sum() / total)
            weight += count
        return lost / weight if weight else 0.0

    def _changed(self, row: int) -> None:
        node = self.nodes[row]
        self.table.put(NodeState.of(node.name, node.gpus, self._taken[row]))
        self._free[row] = sum(_free_part(self.state(row)))

    def _free_parts(self) -> Floats:
        width = max((len(node.gpus) for node in self.nodes), default=0)
        parts = np.zeros((len(self.nodes), max(1, width)))
        for row in range(len(self.nodes)):
            mine = _free_part(self.state(row))
            parts[row, : len(mine)] = mine
        return parts


def _free_part(state: NodeState) -> list[float]:
    """Of each GPU the smaller of the free parts of memory and time."""
    return [
        0.0
        if gpu.taken.whole
        else min(gpu.free_memory / max(1, gpu.gpu.capacity_mib), gpu.free_cores / max(1, gpu.gpu.cores_capacity))
        for gpu in state.gpus
    ]


def _less(before: Taken, gone: Taken) -> Taken:
    return Taken(
        before.slots - gone.slots, before.memory_mib - gone.memory_mib, before.cores - gone.cores,
        before.whole and not gone.whole, instances=tuple(sorted({*before.instances} - {*gone.instances})),
        mps=before.mps and before.slots > gone.slots,
    )  # fmt: skip
