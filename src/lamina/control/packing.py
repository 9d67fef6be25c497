"""The packing policy over the cluster as it is: it learns from the pods that come, and tells the best nodes and GPUs.

What would hold up every other answer is done beside the event loop, over copies of the arrays: working out the policy
for the pods seen so far, and the first levels of a kind of pod over all nodes. Before it has learnt, and where the
kinds of GPUs are new, it is best fit.
"""

import asyncio
import ctypes
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from lamina import native
from lamina.control.capacity import Capacity
from lamina.control.free_arrays import FreeArrays
from lamina.model.host_size import HostSize
from lamina.model.policies import PACKING, chain
from lamina.model.requests import PodRequest
from lamina.placement.packing import LIBRARY, Ask, Cluster, Seen, bits
from lamina.placement.packing.best_fit import best_fit
from lamina.placement.packing.coefficients import Coefficients
from lamina.placement.packing.kernel import Kernel
from lamina.placement.packing.mix import Floats, Mix
from lamina.placement.packing.packer import GROWTH
from lamina.placement.packing.ranking import Ranking
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import waste

_LOOK_S = 0.1
_AT_ONCE = 500
"""Rows that are worked out at once, in some 5 ms at most."""
_MOST_WARM = 64
"""Kinds of pods whose levels a new policy brings along."""

_Levels = tuple[Floats, NDArray[np.uint64]]


class Packing:
    """Levels of nodes and GPUs for pods under the policy. `follow` has to run for it to learn."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._library = ctypes.CDLL(str(native.path(LIBRARY)))
        self._arrays = FreeArrays(capacity)
        self._policy: Coefficients | None = None
        self._version = self._tried = -1
        self._next = 1
        self._ranking: Ranking | None = None
        self._touched: list[set[int]] = []

    async def follow(self) -> None:
        """Learn anew when enough pods have come, until cancelled."""
        while True:
            await self.learn()
            await asyncio.sleep(_LOOK_S)

    async def learn(self) -> None:
        """Work out the policy for the pods seen so far, where that would be another one."""
        self._refresh()
        arrived, version = self._capacity.arrivals.seen.arrived, self._arrays.version
        if not arrived or (arrived < self._next and version == self._tried):
            return
        self._tried, self._next = version, max(arrived + 1, int(arrived * GROWTH))
        mix = self._mix()
        if mix is None:
            return
        policy = await asyncio.to_thread(waste, mix, TRAINED, self._library)
        while version == self._arrays.version:
            asks = self._ranking.kept()[-_MOST_WARM:] if self._ranking is not None else []
            cluster = self._arrays.cluster
            warm, touched = await self._beside(policy, asks)
            if cluster is self._arrays.cluster:
                self._policy, self._version = policy, version
                self._ranking = self._ranked(policy)
                _adopt(self._ranking, warm, touched)
                return

    async def prepare(self, request: PodRequest, size: HostSize) -> None:
        """See that `worth` has little to work out: levels of a kind of pod that is new are worked out beside the
        event loop."""
        self._refresh()
        ask, ranking = self._arrays.ask(request, size), self._ranking
        if request.node_policy != PACKING or ask is None or ranking is None or self._policy is None:
            return
        if ranking.missed(ask) > _AT_ONCE:
            warm, touched = await self._beside(self._policy, [ask])
            if ranking is self._ranking:
                _adopt(ranking, warm, touched)

    def worth(self, request: PodRequest, size: HostSize) -> Floats | None:
        """How good each row of the table is; None where the pod has another policy or is not one for the arrays."""
        if request.node_policy != PACKING:
            return None
        self._refresh()
        ask = self._arrays.ask(request, size)
        if ask is None:
            return None
        levels = self._ranking.levels(ask)[0] if self._ranking is not None else best_fit(self._arrays.cluster, ask)[0]
        # The rules of sharing decide where a pod fits; where the arrays see no room the node comes last.
        able = np.isfinite(levels)
        return np.where(able, levels, levels.min(where=able, initial=0.0) - 1.0)

    def gpus(self, request: PodRequest, size: HostSize, node: str) -> frozenset[str]:
        """The UUIDs of the GPUs that are best on the node; none where the pod has another policy."""
        if PACKING not in chain(request.gpu_policy):
            return frozenset()
        self._refresh()
        table = self._capacity.table
        state, ask = table.state(node), self._arrays.ask(request, size)
        if state is None or ask is None:
            return frozenset()
        row = table.rows[node]
        if self._ranking is not None:
            chosen = self._ranking.one(ask, row)[1]
        else:
            chosen = int(best_fit(_row_of(self._arrays.cluster, row), ask)[1][0])
        return frozenset(state.gpus[place].gpu.uuid for place in bits(chosen) if place < len(state.gpus))

    def _mix(self) -> Mix | None:
        """The pods seen so far in the arrays' terms; None where none of them is one for the arrays."""
        arrivals, cluster = self._capacity.arrivals, self._arrays.cluster
        counts: Seen[Ask] = Seen()
        for pod, n in arrivals.seen.counts.items():
            if (ask := self._arrays.ask(pod.request, pod.size)) is not None:
                counts.counts[ask] = counts.counts.get(ask, 0) + n
        if not counts.counts:
            return None
        beside = sum(cpu for node, cpu in arrivals.cpu_beside.items() if node in self._capacity.table.rows)
        without = Ask(beside, 0, 0, (0,) * len(cluster.full_memory), 0)
        return Mix.of({**counts.counts, without: 1}, cluster.full_memory, cluster.full_cores, cluster.supply())

    async def _beside(self, policy: Coefficients, asks: list[Ask]) -> tuple[dict[Ask, _Levels], set[int]]:
        """Levels over all nodes as they are now, worked out in a thread, and the rows that have changed meanwhile."""
        copied = {each.name: getattr(self._arrays.cluster, each.name).copy() for each in fields(Cluster)}
        touched: set[int] = set()
        self._touched.append(touched)
        try:
            return await asyncio.to_thread(_levels, self._library, Cluster(**copied), policy, asks), touched
        finally:
            self._refresh()
            self._touched.remove(touched)

    def _ranked(self, policy: Coefficients) -> Ranking:
        cluster = self._arrays.cluster
        return Ranking(Kernel(self._library, cluster, policy), len(cluster.cpu))

    def _refresh(self) -> None:
        rows = self._arrays.refresh()
        if rows is None:
            current = self._policy is not None and self._version == self._arrays.version
            self._ranking = self._ranked(self._policy) if current and self._policy is not None else None
            return
        for row in rows.tolist():
            for touched in self._touched:
                touched.add(row)
            if self._ranking is not None:
                self._ranking.changed(row)


def _adopt(ranking: Ranking, warm: dict[Ask, _Levels], touched: set[int]) -> None:
    for ask, found in warm.items():
        ranking.keep(ask, *found)
    for row in touched:
        ranking.changed(row)


def _levels(library: ctypes.CDLL, cluster: Cluster, policy: Coefficients, asks: list[Ask]) -> dict[Ask, _Levels]:
    kernel, nodes = Kernel(library, cluster, policy), len(cluster.cpu)
    found: dict[Ask, _Levels] = {}
    for ask in asks:
        levels, gpus = np.zeros(nodes), np.zeros(nodes, np.uint64)
        kernel.levels(ask, np.arange(nodes), levels, gpus)
        found[ask] = levels, gpus
    return found


def _row_of(cluster: Cluster, row: int) -> Cluster:
    here = {
        name: getattr(cluster, name)[[row]] for name in ("cpu", "memory", "kind", "gpu_memory", "gpu_cores", "slots")
    }
    return replace(cluster, **here)
