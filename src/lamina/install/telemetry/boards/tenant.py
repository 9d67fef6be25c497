"""Chosen namespaces: limits, use, idle shares, claims, cost, and pods that wait."""

from lamina.install.telemetry.boards import CLAIM_LEGEND, NAMESPACE, OF_CLAIM, OF_POD, POD_LEGEND
from lamina.install.telemetry.panels import Query, counted, graph, number
from lamina.install.telemetry.queries import cost

_CHOSEN = 'namespace=~"$namespace",'
_USED = f"sum by ({OF_POD}) (lamina_container_memory_used_bytes{NAMESPACE})"
_LIMIT = f"sum by ({OF_POD}) (lamina_container_memory_limit_bytes{NAMESPACE})"
_LENT_AND_BORROWED = (
    "sum by (namespace, figure) "
    f'(rate(lamina_workload_gpu_seconds_total{{{_CHOSEN}part="compute",figure=~"lent|borrowed"}}[5m]))'
)

PANELS = (
    number(
        "Memory limit", f"sum(lamina_container_memory_limit_bytes{NAMESPACE})", "bytes",
        "Memory that all containers may use together. `lamina quotas` has what the namespace may hold.",
    ),
    number(
        "Memory used", f"sum(lamina_container_memory_used_bytes{NAMESPACE})", "bytes",
        "Memory that they use now. Far below the limit, request less.",
    ),
    number(
        "Compute requested", f"sum(lamina_container_cores_percent{NAMESPACE})", "percent",
        "Percent of one GPU's time that containers request, added up: 200 is two GPUs.",
    ),
    number(
        "Compute used", f"sum(lamina_container_utilization_percent{NAMESPACE})", "percent",
        "Percent of one GPU's time that they used in the last seconds. Above what is requested, it is borrowed.",
    ),
    number(
        "Containers", f"count(count by ({OF_POD}) (lamina_container_memory_limit_bytes{NAMESPACE}))",
        counted("containers"), "Containers with a share. `lamina pods` lists them.",
    ),
    number(
        "Pods that fit nowhere", f"sum(lamina_pods_pending{NAMESPACE}) or vector(0)", counted("pods"),
        "Pods that fit on no node when they were last tried. `lamina why POD` explains each in numbers.",
    ),
    graph(
        "Memory used", "bytes", "Memory that each container uses, of all kinds. A rising line may be a leak.",
        Query(_USED, POD_LEGEND),
    ),
    graph(
        "Memory used of the limit", "percentunit",
        "Part of its limit that each container uses. At 100 %, the next allocation fails: request more.",
        Query(f"{_USED} / {_LIMIT}", POD_LEGEND),
    ),
    graph(
        "Memory of the limit that was never used", "bytes",
        "The limit less the most that the container ever used. Where it stays large, request less: see `lamina advise "
        "shares`.",
        Query(f"{_LIMIT} - sum by ({OF_POD}) (lamina_container_memory_peak_bytes{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "Utilization", "percent",
        "GPU time of each container over the last seconds: 100 is all of one GPU. At its cap, request more compute.",
        Query(f"sum by ({OF_POD}) (lamina_container_utilization_percent{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "Time since pods last used their GPU", "s",
        "Seconds without GPU time. Delete or resize what stays idle: see `lamina advise idle`.",
        Query(f"max by (namespace, pod) (lamina_pod_idle_seconds{NAMESPACE})", "{{namespace}}/{{pod}}"),
    ),
    graph(
        "Compute lent and borrowed", counted("GPUs"),
        "GPU time that pods requested and left to others, and that they used beyond their request, as parts of GPUs. "
        "Who always borrows should request more.",
        Query(_LENT_AND_BORROWED, "{{namespace}} {{figure}}"),
    ),
    graph(
        "Memory of claims, used of the limit", "percentunit",
        "Part of its limit that each request of a ResourceClaim uses. At 100 %, the next allocation fails: make the "
        "claim larger.",
        Query(
            f"sum by ({OF_CLAIM}) (lamina_claim_memory_used_bytes{NAMESPACE})"
            f" / sum by ({OF_CLAIM}) (lamina_claim_memory_limit_bytes{NAMESPACE})",
            CLAIM_LEGEND,
        ),
    ),
    graph(
        "Utilization of claims", "percent",
        "GPU time of each request of a ResourceClaim over the last seconds: 100 is all of one GPU. A claim that stays "
        "at 0 keeps its part from others.",
        Query(f"sum by ({OF_CLAIM}) (lamina_claim_utilization_percent{NAMESPACE})", CLAIM_LEGEND),
    ),
    graph(
        "Cost by workload", counted("per hour"),
        "Price of what the pods of a workload request for an hour, in the currency of `pricing.currency`. It costs the "
        "same when it is idle.",
        Query(cost("namespace", "kind", "workload", of=_CHOSEN), "{{namespace}} {{kind}}/{{workload}}"),
    ),
    graph(
        "Pods that fit nowhere, by nearest cause", counted("pods"),
        "Pods by the reason that is closest to a fit. The page about the alert LaminaPodsPending says what to do about "
        "each cause.",
        Query(f"sum by (namespace, cause) (lamina_pods_pending{NAMESPACE})", "{{namespace}} {{cause}}"),
    ),
    graph(
        "Longest time that a pod has fit nowhere", "s",
        "Seconds since the first of these pods fit nowhere for the first time. After 15 minutes there is an alert.",
        Query(f"max by (namespace, cause) (lamina_pods_pending_longest_seconds{NAMESPACE})", "{{namespace}} {{cause}}"),
    ),
)  # fmt: skip
