"""Fragmentation Gradient Descent (Weng et al., USENIX ATC'23) in the same terms, as the yardstick.

A node's fragment is what a pod drawn from the usual mix could not use of its idle GPUs. The published score is a
truncated percentage of a sigmoid, which makes wide levels; they decide much of its quality, so they are kept.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from lamina.placement.packing.cluster import MAX_GPUS, Ask, Ints, Longs
from lamina.placement.packing.coefficients import Coefficients, LeftoverValues, coefficients
from lamina.placement.packing.mix import Mix

COVERED = 0.95
"""The most frequent requests that make up this part of all pods are its usual ones."""


def fgd(requests: Mapping[Ask, int], full_memory: Ints, full_cores: Ints, supply: Longs) -> Coefficients:
    """FGD's score. Host memory plays no part in it, and pods without GPUs count as pods that can use none."""
    merged: Counter[Ask] = Counter()
    for ask, n in requests.items():
        merged[ask._replace(memory=0)] += n
    covered = 0
    usual: Counter[Ask] = Counter()
    for ask, n in merged.most_common():
        if covered >= COVERED * merged.total():
            break
        usual[ask] = n
        covered += n
    mix = Mix.of(usual, full_memory, full_cores, supply)
    kinds = len(full_memory)
    without = sum(n for ask, n in usual.items() if not ask.gpus) / max(1, usual.total())
    values = LeftoverValues(
        one=mix.counts / max(1, usual.total()),
        fill=np.zeros(len(mix.asks)),
        gpu_price=np.full(kinds, without),
        cpu_price=np.zeros(kinds),
        hinges=[],
        remainder=np.zeros((kinds, 1001)),
        unpaired=0.0,
        idle=np.zeros(MAX_GPUS + 1),
        all_idle=0.0,
        levels=np.array([np.log(i / (100 - i)) for i in range(1, 100)]),
        step=1.0,
    )
    return coefficients(mix, values)
