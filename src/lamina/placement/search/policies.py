"""In which order GPUs are tried, and how nodes compare: `binpack` fills up, `spread` keeps apart.

Where `packing` is asked of a pod that its arrays cannot express, it is `binpack`.

HAMi's measure: the parts of slots, memory and cores that are taken, each with the same weight. For GPUs the share
that is being placed is counted in, so that unequal GPUs compare rightly; for nodes it is what is taken before.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lamina.core.policies import BINPACK, NUMA, PACKING, SPREAD, chain
from lamina.core.requests import ContainerRequest
from lamina.placement.state.nodes import GpuState, share

Usage = TypeVar("Usage", float, NDArray[np.float64])
Order = tuple[float, ...]
GpuMeasure = Callable[[ContainerRequest, GpuState], float]
"""What a GPU is worth to a container; the lowest goes first."""


def gpu_order(policy: str, container: ContainerRequest) -> Callable[[GpuState], Order]:
    """A sort key that puts the GPU to try first first: by the orders that `policy` names, else spread.

    Ties go by NUMA node, then by index.
    """
    measures = [GPU_MEASURES[name] for name in chain(policy) if name in GPU_MEASURES] or [GPU_MEASURES[SPREAD]]

    def key(state: GpuState) -> Order:
        return *[measure(container, state) for measure in measures], state.gpu.numa or 0, state.gpu.index

    return key


def node_score(policy: str, usage: Usage) -> Usage:
    """0 to 10, the higher the better, of a node or of many, by `NodeState.usage`."""
    return 10.0 * (1.0 - usage) if policy == SPREAD else 10.0 * usage


def _fullness(container: ContainerRequest, state: GpuState) -> float:
    gpu = state.gpu
    return state.usage + share(gpu, 1, container.memory_on(gpu.capacity_mib), container.cores)


GPU_MEASURES: dict[str, GpuMeasure] = {
    BINPACK: lambda container, state: -_fullness(container, state),
    PACKING: lambda container, state: -_fullness(container, state),
    SPREAD: _fullness,
    NUMA: lambda container, state: state.gpu.numa or 0,
}
"""By the names of `model.policies`; a policy is added by adding its measure."""
