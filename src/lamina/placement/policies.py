"""In which order GPUs are tried, and how nodes compare: `binpack` fills up, `spread` keeps apart.

HAMi's measure: the parts of slots, memory and cores that are taken, each with the same weight. For GPUs the share
that is being placed is counted in, so that unequal GPUs compare rightly; for nodes it is what is taken before.
"""

from collections.abc import Callable

from lamina.model.requests import ContainerRequest
from lamina.placement.nodes import GpuState, NodeState, share

BINPACK = "binpack"
SPREAD = "spread"

Order = tuple[float, int, int]


def gpu_order(policy: str, container: ContainerRequest) -> Callable[[GpuState], Order]:
    """A sort key that puts the GPU to try first first. Ties go by NUMA node, then by index."""
    sign = -1.0 if policy == BINPACK else 1.0

    def key(state: GpuState) -> Order:
        gpu = state.gpu
        fullness = state.usage + share(gpu, 1, container.memory_on(gpu.capacity_mib), container.cores)
        return sign * fullness, gpu.numa or 0, gpu.index

    return key


def node_score(policy: str, node: NodeState) -> float:
    """0 to 10, the higher the better."""
    return 10.0 * (1.0 - node.usage) if policy == SPREAD else 10.0 * node.usage
