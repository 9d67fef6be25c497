"""Lamina's own policy: place where the expected waste of the cluster grows least.

The waste of a node is a weighted sum of features of what is free on it, each an amount of GPU that pods of the usual
mix are likely to leave unused. docs/concepts/packing-policy.md gives the reason for each;
the weights come from `bench.packing.train`.
"""

import ctypes
from dataclasses import astuple, dataclass

import numpy as np

from lamina.placement.packing.cluster import MAX_GPUS
from lamina.placement.packing.coefficients import Coefficients, LeftoverValues, coefficients
from lamina.placement.packing.kernel import remainders
from lamina.placement.packing.mix import Floats, Mix

OFFERS = (4, 16, 64)
"""For how many pods that could be put on it a GPU's remainder is kept open."""

MIN_CORES = 100.0
"""Thousandths of a core per GPU: no threshold lies below, so that sums stay exact."""

LOW, MIDDLE, HIGH = 0.25, 0.5, 0.75
"""Parts of the GPU demand whose cores per GPU are the thresholds for a node's balance of CPU and GPU."""


@dataclass(frozen=True)
class Weights:
    """What each feature counts for, in GPUs of waste per GPU of the feature; `step` is the width of a level in GPUs."""

    one_by_count: float
    one_by_demand: float
    one_of_several: float
    one_of_choosy: float
    fill_by_count: float
    fill_by_demand: float
    scarce_gpu: float
    scarce_cpu: float
    short_of_cpu_low: float
    short_of_cpu_middle: float
    short_of_cpu_high: float
    short_of_cpu_all: float
    stranded_cpu: float
    idle_node: float
    idle_gpus: float
    remainder_few: float
    remainder_some: float
    remainder_many: float
    step: float


def waste(mix: Mix, weights: Weights, library: ctypes.CDLL) -> Coefficients:
    """The policy for a mix that has at least one pod with a GPU.

    Where no pod's CPU is counted, CPU plays no part.
    """
    w = weights
    thresholds = [max(MIN_CORES, mix.cores_per_gpu(q)) for q in (LOW, MIDDLE, HIGH)]
    hinges: list[tuple[float, float, float]] = [
        (w.short_of_cpu_low, 1, -1 / thresholds[0]),
        (w.short_of_cpu_middle, 1, -1 / thresholds[1]),
        (w.short_of_cpu_high, 1, -1 / thresholds[2]),
        (w.short_of_cpu_all, 1, -1 / max(MIN_CORES, mix.all_cores_per_gpu)),
        (w.stranded_cpu, -1, 1 / thresholds[1]),
    ]
    counted = mix.all_cpu > 0
    scarce = np.minimum(1.0, mix.scarcity())
    unused = remainder_values(mix, library)
    kept = np.array([w.remainder_few, w.remainder_some, w.remainder_many])
    values = LeftoverValues(
        one=w.one_by_count * mix.by_count
        + mix.by_demand * (w.one_by_demand + w.one_of_several * mix.several + w.one_of_choosy * mix.choosy),
        fill=w.fill_by_count * mix.by_count + w.fill_by_demand * mix.by_demand,
        gpu_price=w.scarce_gpu * scarce,
        cpu_price=w.scarce_cpu * scarce / thresholds[1] * counted,
        hinges=hinges if counted else [],
        remainder=np.tensordot(kept, unused, axes=1),
        unpaired=float(kept.sum()),
        idle=w.idle_gpus * np.arange(MAX_GPUS + 1) / 8,
        all_idle=w.idle_node,
        step=w.step,
    )
    return coefficients(mix, values)


def remainder_values(mix: Mix, library: ctypes.CDLL) -> Floats:
    """What stays unused of a GPU with 0 to 1000 thousandths free, in GPUs: (offers, kinds, 1001), for each of OFFERS.

    A pod of the mix comes and is put there or not, whichever leaves less at the end. With few offers left a remainder
    that only a rare share fills is as good as lost.
    """
    single = np.array([ask.gpus == 1 for ask in mix.asks], bool)
    sizes = np.clip(np.rint(mix.shares * 1000), 1, 1000).astype(int)
    chances = np.zeros((len(mix.full_memory), 1001))
    for kind, chance in enumerate(chances):
        able = single & mix.accepted[:, kind]
        chance += np.bincount(sizes[able, kind], mix.by_count[able], minlength=1001)
    different, which = np.unique(chances, axis=0, return_inverse=True)
    found = np.stack([remainders(library, chance, OFFERS) for chance in different], axis=1)
    return found[:, which]


def vector(weights: Weights) -> Floats:
    """The weights in order."""
    return np.array(astuple(weights))
