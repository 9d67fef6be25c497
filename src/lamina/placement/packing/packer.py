"""The policy as a live scheduler uses it: it learns from the pods that come, and answers for any request.

    packer = Packer(library, cluster)          # the cluster's arrays are the caller's, updated in place
    packer.arrived(ask)                        # once for each pod, placed or not
    levels, gpus = packer.levels(ask)          # for every node how good, and which GPUs
    ...                                        # the caller updates a row
    packer.changed(row)

`levels` is deterministic: the same arrivals, arrays and calls give the same answers. The caller may leave out nodes
that other rules exclude, and takes the highest level of the rest; equal levels go to the first row. Before
the first pod with GPUs has come, levels are those of best fit.
"""

import ctypes

import numpy as np
from numpy.typing import NDArray

from lamina.placement.packing.best_fit import best_fit
from lamina.placement.packing.cluster import Ask, Cluster
from lamina.placement.packing.kernel import Kernel
from lamina.placement.packing.mix import Floats, Mix
from lamina.placement.packing.ranking import Ranking
from lamina.placement.packing.seen import Seen
from lamina.placement.packing.trained import TRAINED
from lamina.placement.packing.waste import Weights, waste

GROWTH = 1.5
"""The policy is worked out anew when this many times the pods have come: at 1, 2, 3, 4, 6, 9 and so on."""


class Packer:
    """Levels for a cluster whose usual pods are learnt as they come."""

    def __init__(
        self, library: ctypes.CDLL, cluster: Cluster, seen: Seen[Ask] | None = None, weights: Weights = TRAINED
    ) -> None:
        self._library = library
        self._cluster = cluster
        self._weights = weights
        self._ranking: Ranking | None = None
        self._next = 1
        self.seen: Seen[Ask] = seen or Seen()
        self._learn()

    def arrived(self, ask: Ask) -> None:
        """A pod has come. Call it once for each pod, also for those without GPUs and those that do not fit."""
        self.seen.add(ask)
        self._learn()

    def changed(self, row: int) -> None:
        """The cluster's arrays have changed in this row."""
        if self._ranking is not None:
            self._ranking.changed(row)

    def levels(self, ask: Ask) -> tuple[Floats, NDArray[np.uint64]]:
        """For every node how good it is for the pod (-inf: does not fit), and which GPUs it would get there (bits).

        Both arrays are kept and updated; copy what is to outlive the next call.
        """
        return best_fit(self._cluster, ask) if self._ranking is None else self._ranking.levels(ask)

    def best(self, ask: Ask) -> tuple[int, int] | None:
        """The node's row and the GPUs (bits) for the pod; None where it fits nowhere."""
        levels, gpus = self.levels(ask)
        row = int(levels.argmax())
        return (row, int(gpus[row])) if levels[row] > -np.inf else None

    def _learn(self) -> None:
        if self.seen.arrived < self._next:
            return
        cluster = self._cluster
        mix = Mix.of(self.seen.counts, cluster.full_memory, cluster.full_cores, cluster.supply())
        self._next = max(self.seen.arrived + 1, int(self.seen.arrived * GROWTH))
        policy = waste(mix, self._weights, self._library)
        self._ranking = Ranking(Kernel(self._library, cluster, policy), len(cluster.cpu))
