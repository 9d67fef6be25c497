"""Names of the policies that choose nodes and GPUs, as people write them in configurations and annotations."""

BINPACK = "binpack"
SPREAD = "spread"
NUMA = "numa"
TOPOLOGY = "topology-aware"
MUTEX = "mutex"

NODE_POLICIES = (BINPACK, SPREAD)
GPU_ORDERS = (BINPACK, SPREAD, NUMA)
"""Ways to put GPUs in order."""
GPU_POLICIES = (*GPU_ORDERS, TOPOLOGY, MUTEX)
"""Orders, and rules that go beside an order: connected GPUs together, idle GPUs only."""


def chain(policy: str) -> tuple[str, ...]:
    """The policies that a comma list names, in its order."""
    return tuple(item for part in policy.split(",") if (item := part.strip()))
