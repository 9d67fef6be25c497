"""The packing policy over the live cluster: it learns from the pods that come, and rates nodes and GPUs.

What would block the event loop runs in a thread, over copies of the arrays: learning the policy for the pods observed
so far, and rating all nodes for a new kind of pod. Before the policy has been learned, and while new kinds of GPUs are
not yet part of it, best fit takes its place.

The policy only improves placement, so none of its failures may stop admission or binding: what it cannot rate is placed
as binpack would, and what it cannot learn is set aside.
"""

import asyncio
import ctypes

import numpy as np

from lamina import native
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.packing.free_arrays import FreeArrays
from lamina.core.host_size import HostSize
from lamina.core.policies import PACKING, chain
from lamina.core.requests import PodRequest
from lamina.placement.packing import (
    LIBRARY,
    Ask,
    LearningSchedule,
    Mix,
    Packer,
    PackingTrial,
    RequestCounts,
    bits,
    learn_policy,
)
from lamina.placement.packing.coefficients import Coefficients
from lamina.placement.packing.mix import Floats
from lamina.placement.packing.packer import Levels
from lamina.ports.clock import Clock
from lamina.ports.polling import poll

_KIND = "packing policy"
"""The kind under which its failures are set aside."""
_MAX_NAME = 500
_POLL_S = 0.1
_MAX_ROWS_INLINE = 500
"""Rows that may be computed in the event loop, in some 5 ms at most."""
_MAX_KINDS_KEPT = 64
"""Kinds of pods whose levels a new policy brings along."""


class PackingPolicy:
    """Ratings of nodes and GPUs for pods that use the packing policy. `run` must run for it to learn."""

    def __init__(self, cluster_state: ClusterState) -> None:
        self._cluster_state = cluster_state
        self._library = ctypes.CDLL(str(native.path(LIBRARY)))
        self._arrays = FreeArrays(cluster_state)
        self._packer = Packer(self._library, self._arrays.cluster)
        self._schedule = LearningSchedule()
        self._learned_version = self._tried_version = -1
        self._changed_rows: list[set[int]] = []
        """For each computation in a thread, the rows that have changed since it started."""
        self._set_aside = cluster_state.set_aside

    @property
    def learned(self) -> bool:
        """Whether a learned policy is in use; best fit is used otherwise."""
        return self._packer.policy is not None

    async def run(self, clock: Clock) -> None:
        """Learn again whenever enough pods have come, until canceled."""
        await poll(self._try_to_learn, clock, every_s=_POLL_S)

    async def _try_to_learn(self) -> None:
        try:
            await self.learn()
        except Exception as error:
            self._set_aside.add(_KIND, "learning", error)
            self._packer.use(None)

    async def learn(self) -> None:
        """Learn the policy for the pods observed so far, if it would differ."""
        self._refresh()
        arrived, version = self._cluster_state.request_mix.requests.arrived, self._arrays.version
        if not arrived or (not self._schedule.due(arrived) and version == self._tried_version):
            return
        self._tried_version = version
        self._schedule.learned(arrived)
        mix = self._mix()
        if mix is None:
            return
        policy = await asyncio.to_thread(learn_policy, mix, self._library)
        while version == self._arrays.version:
            asks = self._packer.kept()[-_MAX_KINDS_KEPT:]
            packer = self._packer
            levels, changed = await self._compute_levels(policy, asks)
            if packer is self._packer:
                self._learned_version = version
                packer.use(policy)
                packer.adopt(levels, changed)
                return

    async def warm_up(self, request: PodRequest | None, size: HostSize) -> None:
        """Leave little to compute for `node_values`: rate all nodes for a new kind of pod in a thread."""
        with self._set_aside.around(_KIND, "rating nodes ahead"):
            await self._warm_up(request, size)

    def node_values(self, request: PodRequest | None, size: HostSize) -> Floats | None:
        """How good each row of the table is; None where the pod has another policy or the arrays cannot express it.

        `request` is None for a pod that requests no GPU.
        """
        with self._set_aside.around(_KIND, "rating nodes"):
            return self._node_values(request, size)
        return None

    def best_gpus(self, request: PodRequest, size: HostSize, node: str) -> frozenset[str]:
        """The UUIDs of the best GPUs on the node; none where the pod has another policy."""
        with self._set_aside.around(_KIND, "rating GPUs"):
            return self._best_gpus(request, size, node)
        return frozenset()

    def trial(self) -> PackingTrial | None:
        """Ratings of nodes on which places are only planned; None before the policy has been learned."""
        with self._set_aside.around(_KIND, "rating planned places"):
            self._refresh()
            if (policy := self._packer.policy) is not None:
                return PackingTrial(self._packer.snapshot(policy), self._cluster_state.table.rows)
        return None

    def ask_trial(self, trial: PackingTrial, request: PodRequest, size: HostSize) -> Ask | None:
        """What to ask the trial about such a pod, which then need not compute what is known already.

        None where the pod has another policy or the arrays cannot express it.
        """
        with self._set_aside.around(_KIND, "rating planned places"):
            ask = self._arrays.ask(request, size) if request.node_policy == PACKING else None
            if ask is not None:
                trial.adopt(ask, self._packer.levels(ask))
            return ask
        return None

    async def _warm_up(self, request: PodRequest | None, size: HostSize) -> None:
        self._refresh()
        ask, packer, policy = self._arrays.ask(request, size), self._packer, self._packer.policy
        if not _uses_packing(request) or ask is None or policy is None:
            return
        if packer.rows_to_compute(ask) > _MAX_ROWS_INLINE:
            levels, changed = await self._compute_levels(policy, [ask])
            if packer is self._packer and packer.policy is policy:
                packer.adopt(levels, changed)

    def _node_values(self, request: PodRequest | None, size: HostSize) -> Floats | None:
        if not _uses_packing(request):
            return None
        self._refresh()
        ask = self._arrays.ask(request, size)
        if ask is None:
            return None
        levels = self._packer.levels(ask)[0]
        # The sharing rules decide where a pod fits. A node that is full according to the arrays comes last.
        fits = np.isfinite(levels)
        return np.where(fits, levels, levels.min(where=fits, initial=0.0) - 1.0)

    def _best_gpus(self, request: PodRequest, size: HostSize, node: str) -> frozenset[str]:
        if PACKING not in chain(request.gpu_policy):
            return frozenset()
        self._refresh()
        table = self._cluster_state.table
        state, ask = table.state(node), self._arrays.ask(request, size)
        if state is None or ask is None:
            return frozenset()
        chosen = self._packer.level_on(ask, table.rows[node])[1]
        return frozenset(state.gpus[index].gpu.uuid for index in bits(chosen) if index < len(state.gpus))

    def _mix(self) -> Mix | None:
        """The pods observed so far in the arrays' terms; None where the arrays can express none of them."""
        request_mix, cluster = self._cluster_state.request_mix, self._arrays.cluster
        counts: RequestCounts[Ask] = RequestCounts()
        for pod, number in request_mix.requests.counts.items():
            try:
                ask = self._arrays.ask(pod.request, pod.size)
            except Exception as error:
                self._set_aside.add(_KIND, f"pods such as {pod}"[:_MAX_NAME], error)
                continue
            if ask is not None:
                counts.counts[ask] = counts.counts.get(ask, 0) + number
        if not counts.counts:
            return None
        other_cpu = sum(
            cpu for node, cpu in request_mix.cpu_of_other_pods.items() if node in self._cluster_state.table.rows
        )
        other_pods = Ask(other_cpu, 0, 0, (0,) * len(cluster.full_memory), 0)
        return Mix.of({**counts.counts, other_pods: 1}, cluster.full_memory, cluster.full_cores, cluster.supply())

    async def _compute_levels(self, policy: Coefficients, asks: list[Ask]) -> tuple[dict[Ask, Levels], set[int]]:
        """Levels over all nodes as they are now, computed in a thread, and the rows that have changed meanwhile."""
        snapshot, changed = self._packer.snapshot(policy), set[int]()
        self._changed_rows.append(changed)
        try:
            return await asyncio.to_thread(_levels, snapshot, asks), changed
        finally:
            try:
                self._refresh()
            finally:
                # By identity: sets compare by value, and those of other calls may be equal.
                self._changed_rows = [other for other in self._changed_rows if other is not changed]

    def _refresh(self) -> None:
        rows = self._arrays.refresh()
        if rows is None:
            policy = self._packer.policy if self._learned_version == self._arrays.version else None
            self._packer = Packer(self._library, self._arrays.cluster)
            self._packer.use(policy)
            return
        for row in rows.tolist():
            for changed in self._changed_rows:
                changed.add(row)
            self._packer.changed(row)


def _levels(packer: Packer, asks: list[Ask]) -> dict[Ask, Levels]:
    return {ask: packer.levels(ask) for ask in asks}


def _uses_packing(request: PodRequest | None) -> bool:
    """Whether the policy rates nodes for the pod; those that request no GPU name no policy."""
    return request is None or request.node_policy == PACKING
