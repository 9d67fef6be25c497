"""Queries that rules and dashboards share."""

GRANTED = "max by (node, gpu, model) (lamina_gpu_memory_granted_mebibytes)"
CLAIMED = "max by (node, gpu, model) (lamina_gpu_memory_claimed_mebibytes)"
CAPACITY = "max by (node, gpu, model) (lamina_gpu_memory_capacity_mebibytes)"
SHARES = "max by (node, gpu, model) (lamina_gpu_shares_granted)"
CORES = (
    "(max by (node, gpu, model) (lamina_gpu_cores_granted_percent)"
    " + max by (node, gpu, model) (lamina_gpu_cores_claimed_percent))"
)
HELD = f"({GRANTED} + {CLAIMED})"
"""MiB that pods hold by grants, and that ResourceClaims hold."""

SET_ASIDE = (
    "sum by (kind) (increase(lamina_objects_set_aside_total[1h])) > 0"
    " or sum by (kind) (lamina_objects_set_aside_total unless lamina_objects_set_aside_total offset 1h)"
)
"""A counter that appears with its first object has no increase, so what was not there an hour ago counts too."""

_PRICE = "max by (model, part) (lamina_gpu_price_per_hour)"
IDLE = 'sum by (model, part) (rate(lamina_gpu_seconds_total{figure="idle"}[5m]))'
"""GPUs that no pod requests, by memory and by compute."""
IDLE_MEMORY = 'rate(lamina_gpu_seconds_total{part="memory",figure="idle"}[5m])'
IDLE_COST = f"sum by (model) ({IDLE} * on (model, part) {_PRICE})"


def requested(*labels: str, of: str = "") -> str:
    """GPUs that workloads request, by these labels, memory and compute apart. `of` selects workloads."""
    grouped = ", ".join((*labels, "model", "part"))
    return f'sum by ({grouped}) (rate(lamina_workload_gpu_seconds_total{{{of}figure="requested"}}[5m]))'


def cost(*labels: str, of: str = "") -> str:
    """The price of that for an hour."""
    priced = f"{requested(*labels, of=of)} * on (model, part) group_left () {_PRICE}"
    return f"sum by ({', '.join(labels)}) ({priced})"
