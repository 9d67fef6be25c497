"""In which order GPUs are tried, and how nodes compare: `binpack` fills up, `spread` keeps apart.

HAMi's measure: the parts of slots, memory and cores that are taken, each with the same weight. For GPUs the share
that is being placed is counted in, so that unequal GPUs compare rightly; for nodes it is what is taken before.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lamina.model.requests import ContainerRequest
from lamina.placement.nodes import GpuState, share

BINPACK = "binpack"
SPREAD = "spread"

Usage = TypeVar("Usage", float, NDArray[np.float64])
Order = tuple[float, int, int]


def gpu_order(policy: str, container: ContainerRequest) -> Callable[[GpuState], Order]:
    """A sort key that puts the GPU to try first first. Ties go by NUMA node, then by index."""
    sign = -1.0 if policy == BINPACK else 1.0

    def key(state: GpuState) -> Order:
        gpu = state.gpu
        fullness = state.usage + share(gpu, 1, container.memory_on(gpu.capacity_mib), container.cores)
        return sign * fullness, gpu.numa or 0, gpu.index

    return key


def node_score(policy: str, usage: Usage) -> Usage:
    """0 to 10, the higher the better, of a node or of many, by `NodeState.usage`."""
    return 10.0 * (1.0 - usage) if policy == SPREAD else 10.0 * usage
