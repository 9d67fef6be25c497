"""The cluster: what there is, what is granted, used and idle, what it costs, and what waits."""

from lamina.install.telemetry.panels import Query, counted, graph, number
from lamina.install.telemetry.queries import (
    CAPACITY,
    CLAIMED,
    CORES,
    GRANTED,
    HELD,
    IDLE,
    IDLE_COST,
    IDLE_MEMORY,
    SHARES,
    cost,
)

PANELS = (
    number(
        "GPUs", f"count({CAPACITY})", counted("GPUs"),
        "GPUs that agents report. If there are fewer than in the machines, see `lamina doctor`.",
    ),
    number(
        "Nodes with GPUs", "count(max by (node) (lamina_gpu_memory_capacity_mebibytes))", counted("nodes"),
        "Nodes with an Inventory. If one is missing, its labels may not select an agent.",
    ),
    number(
        "Memory that can be granted", f"sum({CAPACITY})", "mbytes",
        "Memory of all GPUs, in MiB, multiplied by `sharing.memoryScaling`. Each share takes a part of it.",
    ),
    number(
        "Memory held", f"sum({HELD}) / sum({CAPACITY})", "percentunit",
        "Part of that memory which shares and ResourceClaims hold. Near 100 %, add nodes or look for unused shares.",
    ),
    number(
        "Pods that fit nowhere", "sum(lamina_pods_pending) or vector(0)", counted("pods"),
        "Pods that fit on no node when they were last tried. `lamina why POD` explains each in numbers.",
    ),
    number(
        "Unhealthy GPUs", "count(lamina_gpu_healthy == 0) or vector(0)", counted("GPUs"),
        "GPUs on which no new pods are placed. The dashboard of the node has the reason.",
    ),
    number(
        "Shares idle for an hour", "count(lamina_pod_idle_seconds > 3600) or vector(0)", counted("shares"),
        "Shares whose pods used no GPU time for an hour. `lamina advise idle` names them, and the controller can "
        "reclaim them after a notice.",
    ),
    number(
        "GPUs that nothing requests", f"sum({IDLE_MEMORY})", counted("GPUs"),
        "Parts of GPUs that no pod requests, by memory, added up. If they stay, the pool is too large.",
    ),
    number(
        "Cost of requests", f"sum({cost('namespace')})", counted("per hour"),
        "Price of what pods request for an hour, in the currency of `pricing.currency`. Without prices in the "
        "configuration there is no figure.",
    ),
    number(
        "Cost of what nothing requests", f"sum({IDLE_COST})", counted("per hour"),
        "Price of the parts of GPUs that no pod requests, for an hour, in the currency of `pricing.currency`. If it "
        "stays, remove nodes.",
    ),
    number(
        "Memory of claims", f"sum({CLAIMED})", "mbytes",
        "Memory that ResourceClaims hold, in MiB. `kubectl get resourceclaims -A` lists them.",
    ),
    number(
        "Pods without a grant", "sum(lamina_pods_without_grant) or vector(0)", counted("pods"),
        "Pods that have had a GPU of a node and no grant for a minute, because Lamina did not place them. Delete "
        "them and create them again.",
    ),
    graph(
        "Memory granted by node", "mbytes",
        "MiB that shares hold on each node. A node that stays low may have an unhealthy GPU or unfit pieces.",
        Query(f"sum by (node) ({GRANTED})", "{{node}}"),
    ),
    graph(
        "Memory used by node", "bytes",
        "Memory in use by all processes, as the driver reports it. Far below what is granted, requests are too large: "
        "see `lamina advise shares`.",
        Query("sum by (node) (lamina_gpu_memory_used_bytes)", "{{node}}"),
    ),
    graph(
        "Compute held by node", "percent",
        "Percent of one GPU's time that shares and claims hold, added up: 400 is four GPUs. If it is full and memory "
        "is not, use weights instead of caps.",
        Query(f"sum by (node) ({CORES})", "{{node}}"),
    ),
    graph(
        "Utilization by node", "percent",
        "Part of recent time in which a kernel ran, as a mean of the node's GPUs. Low with many shares means that pods "
        "could share more densely.",
        Query("avg by (node) (lamina_gpu_utilization_percent)", "{{node}}"),
    ),
    graph(
        "Shares by model", counted("shares"),
        "Containers that hold a share, by model of GPU. If one model stays empty, requests may exclude it.",
        Query(f"sum by (model) ({SHARES})", "{{model}}"),
    ),
    graph(
        "Memory that is not held, by model", "mbytes",
        "MiB that new shares can have. If pods still wait, it is in pieces that are too small: see `lamina "
        "advise defrag`.",
        Query(f"sum by (model) ({CAPACITY}) - sum by (model) ({HELD})", "{{model}}"),
    ),
    graph(
        "Memory of claims by node", "mbytes",
        "MiB that ResourceClaims hold on each node. An allocated claim keeps its part until nothing uses it any more.",
        Query(f"sum by (node) ({CLAIMED})", "{{node}}"),
    ),
    graph(
        "Pods that fit nowhere, by nearest cause", counted("pods"),
        "Pods by the reason that is closest to a fit. The page about the alert LaminaPodsPending says what to do about "
        "each cause.",
        Query("sum by (cause) (lamina_pods_pending)", "{{cause}}"),
    ),
    graph(
        "Memory limits by namespace", "bytes",
        "Memory that containers of a namespace may use. To bound it, use a ResourceQuota.",
        Query("sum by (namespace) (lamina_container_memory_limit_bytes)", "{{namespace}}"),
    ),
    graph(
        "Cost by namespace", counted("per hour"),
        "Price of what the pods of a namespace request for an hour, in the currency of `pricing.currency`. "
        "`lamina cost` adds it up over time.",
        Query(cost("namespace"), "{{namespace}}"),
    ),
    graph(
        "GPUs that nothing requests, by model", counted("GPUs"),
        "Parts of GPUs that no pod requests, by memory and by compute, added up. A model that is always idle can go.",
        Query(IDLE, "{{model}} {{part}}"),
    ),
    graph(
        "Cost of what nothing requests, by model", counted("per hour"),
        "Price of these parts for an hour, in the currency of `pricing.currency`. It says which pool to make smaller.",
        Query(IDLE_COST, "{{model}}"),
    ),
)  # fmt: skip
