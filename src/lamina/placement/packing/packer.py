"""The packing policy as a scheduler uses it: it learns from the pods that come, and rates nodes for any request.

    packer = Packer(library, cluster)          # the cluster's arrays belong to the caller and are updated in place
    packer.arrived(ask)                        # once for each pod, placed or not
    levels, gpus = packer.levels(ask)          # for every node, how good it is and which GPUs the pod would get
    ...                                        # the caller updates a row
    packer.changed(row)

`levels` is deterministic: the same arrivals, arrays and calls give the same answers. The caller may leave out nodes
that other rules exclude, and takes the highest level of the rest; of equal levels the first row wins. Before the first
pod with GPUs has come, levels are those of best fit.

Learning and rating a new kind of pod on a large cluster take too long for an event loop. A caller that has one learns
with `learn_policy` in a thread and passes the result to `use`; it rates in a thread with `snapshot` and passes the
result to `adopt`.
"""

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.cluster import Ask, Cluster
from lamina.placement.packing.coefficients import Coefficients
from lamina.placement.packing.kernel import Kernel
from lamina.placement.packing.mix import Floats, Mix, RequestCounts
from lamina.placement.packing.ranking import Ranking, best_fit
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import Weights, waste

GROWTH = 1.5
"""The policy is learned again when this many times the pods have come: at 1, 2, 3, 4, 6, 9 and so on."""

Levels = tuple[Floats, NDArray[np.uint64]]
"""For every node how good it is for a pod (-inf: does not fit), and which GPUs the pod would get there (bits)."""


def learn_policy(mix: Mix, library: ctypes.CDLL, weights: Weights = TRAINED) -> Coefficients:
    """The policy for a cluster with this mix of pods."""
    return waste(mix, weights, library)


class LearningSchedule:
    """When to learn again."""

    def __init__(self) -> None:
        self._next = 1

    def due(self, arrived: int) -> bool:
        """Whether enough pods have come since the last time."""
        return arrived >= self._next

    def learned(self, arrived: int) -> None:
        """The policy was learned from this many pods."""
        self._next = max(arrived + 1, int(arrived * GROWTH))


class Packer:
    """Levels for a cluster whose usual pods are learned as they come."""

    def __init__(
        self,
        library: ctypes.CDLL,
        cluster: Cluster,
        requests: RequestCounts[Ask] | None = None,
        weights: Weights = TRAINED,
    ) -> None:
        self._library = library
        self._cluster = cluster
        self._weights = weights
        self._ranking: Ranking | None = None
        self._schedule = LearningSchedule()
        self.policy: Coefficients | None = None
        """The policy in use; None stands for best fit."""
        self.requests: RequestCounts[Ask] = requests or RequestCounts()
        self._learn()

    def arrived(self, ask: Ask) -> None:
        """A pod has come. Call it once for each pod, also for those without GPUs and those that do not fit."""
        self.requests.add(ask)
        self._learn()

    def changed(self, row: int) -> None:
        """The cluster's arrays have changed in this row."""
        if self._ranking is not None:
            self._ranking.changed(row)

    def take(self, row: int, gpus: int, ask: Ask) -> None:
        """Count the pod on these GPUs (bits) of the node."""
        self._cluster.take(row, gpus, ask)
        self.changed(row)

    def release(self, row: int, gpus: int, ask: Ask) -> None:
        """Undo `take`."""
        self._cluster.release(row, gpus, ask)
        self.changed(row)

    def levels(self, ask: Ask) -> Levels:
        """Levels of all nodes. Both arrays are kept and updated; copy what is to outlive the next call."""
        return best_fit(self._cluster, ask) if self._ranking is None else self._ranking.levels(ask)

    def level_on(self, ask: Ask, row: int) -> tuple[float, int]:
        """Level and GPUs (bits) of one node."""
        if self._ranking is not None:
            return self._ranking.one(ask, row)
        levels, gpus = best_fit(_row_of(self._cluster, row), ask)
        return float(levels[0]), int(gpus[0])

    def best(self, ask: Ask) -> tuple[int, int] | None:
        """The node's row and the GPUs (bits) for the pod; None where it fits nowhere."""
        levels, gpus = self.levels(ask)
        row = int(levels.argmax())
        return (row, int(gpus[row])) if levels[row] > -np.inf else None

    def use(self, policy: Coefficients | None) -> None:
        """Use a policy that was learned elsewhere, or best fit. Drops all kept levels."""
        self.policy = policy
        if policy is None:
            self._ranking = None
        else:
            self._ranking = Ranking(Kernel(self._library, self._cluster, policy), len(self._cluster.cpu))

    def snapshot(self, policy: Coefficients) -> "Packer":
        """A packer with this policy over a copy of the cluster as it is now."""
        copies = {field.name: getattr(self._cluster, field.name).copy() for field in fields(Cluster)}
        packer = Packer(self._library, Cluster(**copies), weights=self._weights)
        packer.use(policy)
        return packer

    def adopt(self, levels: dict[Ask, Levels], changed: Iterable[int]) -> None:
        """Keep levels that a snapshot with the same policy computed. `changed` are the rows that changed since then."""
        if self._ranking is None:
            return
        for ask, computed in levels.items():
            self._ranking.keep(ask, *computed)
        for row in changed:
            self._ranking.changed(row)

    def kept(self) -> list[Ask]:
        """Requests whose levels are kept, the one used last at the end."""
        return [] if self._ranking is None else self._ranking.kept()

    def rows_to_compute(self, ask: Ask) -> int:
        """How many rows the next `levels` computes with the policy, at most; 0 where best fit is used."""
        return 0 if self._ranking is None else self._ranking.missed(ask)

    def _learn(self) -> None:
        arrived = self.requests.arrived
        if self._schedule.due(arrived):
            cluster = self._cluster
            mix = Mix.of(self.requests.counts, cluster.full_memory, cluster.full_cores, cluster.supply())
            self._schedule.learned(arrived)
            self.use(learn_policy(mix, self._library, self._weights))


def _row_of(cluster: Cluster, row: int) -> Cluster:
    by_node = ("cpu", "memory", "kind", "gpu_memory", "gpu_cores", "slots")
    return replace(cluster, **{name: getattr(cluster, name)[[row]] for name in by_node})


class PackingTrial:
    """`packer` rates a copy of the cluster, which belongs to the trial; `rows` has the row of each node."""

    def __init__(self, packer: Packer, rows: Mapping[str, int]) -> None:
        self.rows = rows
        self._packer = packer
        self.changed: list[int] = []
        """The rows where something was planned, one for each change."""

    def adopt(self, ask: Ask, levels: Levels) -> None:
        """Spare the trial computing levels that are known for the cluster without what is planned."""
        self._packer.adopt({ask: (levels[0].copy(), levels[1].copy())}, set(self.changed))

    def levels(self, ask: Ask) -> Floats:
        """How good each row is; -inf where the pod does not fit according to the arrays."""
        return self._packer.levels(ask)[0]

    def best_gpus(self, ask: Ask, node: str) -> int:
        """The best GPUs of the node as bits."""
        return int(self._packer.levels(ask)[1][self.rows[node]])

    def take(self, ask: Ask, node: str, gpus: int) -> None:
        """Plan a pod on these GPUs (bits) of the node."""
        self.changed.append(self.rows[node])
        self._packer.take(self.rows[node], gpus, ask)

    def release(self, ask: Ask, node: str, gpus: int) -> None:
        """Undo `take`."""
        self.changed.append(self.rows[node])
        self._packer.release(self.rows[node], gpus, ask)
