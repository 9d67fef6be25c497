"""Names of the policies that choose nodes and GPUs, as people write them in configurations and annotations."""

BINPACK = "binpack"
SPREAD = "spread"
NUMA = "numa"
TOPOLOGY = "topology-aware"
MUTEX = "mutex"
PACKING = "packing"

NODE_POLICIES = (BINPACK, SPREAD, PACKING)
GPU_ORDERS = (BINPACK, SPREAD, NUMA)
"""Ways to put GPUs in order."""
GPU_POLICIES = (*GPU_ORDERS, TOPOLOGY, MUTEX, PACKING)
"""Orders, and rules in addition to an order: connected GPUs together, idle GPUs only, least expected waste."""


def chain(policy: str) -> tuple[str, ...]:
    """The policies that a comma list names, in its order."""
    return tuple(item for part in policy.split(",") if (item := part.strip()))
