"""Chosen nodes: memory, utilization, containers, claims, health, MPS and MIG."""

from lamina.install.telemetry.boards import CLAIM_LEGEND, GPU_LEGEND, NODE, OF_CLAIM, OF_POD, POD_LEGEND
from lamina.install.telemetry.panels import Query, graph, rows

PANELS = (
    graph(
        "Memory used", "bytes",
        "Memory in use by all processes on each GPU, as the driver reports it. Near the card's size, programs may fail "
        "to allocate.",
        Query(f"lamina_gpu_memory_used_bytes{NODE}", GPU_LEGEND),
    ),
    graph(
        "Utilization", "percent",
        "Part of recent time in which a kernel ran on the GPU. Near 100 %, several shares wait for each other.",
        Query(f"lamina_gpu_utilization_percent{NODE}", GPU_LEGEND),
    ),
    graph(
        "Memory granted", "mbytes",
        "MiB that shares hold on each GPU, without claims. Compare it with what is used to find large requests.",
        Query(f"max by (node, gpu) (lamina_gpu_memory_granted_mebibytes{NODE})", GPU_LEGEND),
    ),
    graph(
        "Memory of claims", "mbytes",
        "MiB that ResourceClaims hold on each GPU. `lamina pods` names their pods.",
        Query(f"max by (node, gpu) (lamina_gpu_memory_claimed_mebibytes{NODE})", GPU_LEGEND),
    ),
    graph(
        "Shares", "suffix:shares",
        "Containers that hold a share of each GPU. At the configured number of shares per GPU, new pods go elsewhere.",
        Query(f"max by (node, gpu) (lamina_gpu_shares_granted{NODE})", GPU_LEGEND),
    ),
    graph(
        "Time since the agent read its GPUs", "s",
        "Seconds since the agent last asked the driver. Above a minute, a call into the driver does not return: see "
        "the alert LaminaAgentStuck.",
        Query(f"time() - lamina_gpus_read_timestamp_seconds{NODE}", "{{node}}"),
    ),
    graph(
        "Memory of containers", "bytes",
        "Memory that each container uses of its GPU, of all kinds. Limits are on the dashboard of the tenant.",
        Query(f"sum by ({OF_POD}) (lamina_container_memory_used_bytes{NODE})", POD_LEGEND),
    ),
    graph(
        "Utilization of containers", "percent",
        "GPU time of each container over the last seconds: 100 is all of one GPU. Without a figure, it is not known "
        "whose time it is.",
        Query(f"sum by ({OF_POD}) (lamina_container_utilization_percent{NODE})", POD_LEGEND),
    ),
    graph(
        "Memory used by claims", "bytes",
        "Memory that the containers of each request of a claim use together. Compare it with what the claim holds.",
        Query(f"sum by ({OF_CLAIM}) (lamina_claim_memory_used_bytes{NODE})", CLAIM_LEGEND),
    ),
    graph(
        "Memory of MIG devices", "bytes",
        "Memory in use of each MIG device. One that stays at zero can be removed: see `lamina mig list`.",
        Query(f"lamina_mig_memory_used_bytes{NODE}", "{{mig}} {{profile}}"),
    ),
    rows(
        "Health of GPUs", f"max by (node, gpu, model, reason) (lamina_gpu_healthy{NODE})", "bool_yes_no",
        "Whether containers may use the GPU, and why not. The page about the alert LaminaGpuUnhealthy says what to do.",
    ),
    rows(
        "MPS daemons", f"max by (node, gpu, state) (lamina_mps_ready{NODE})", "bool_yes_no",
        "Whether the daemon serves clients, and what it waits for. `lamina doctor` names what is in the way.",
    ),
)  # fmt: skip
