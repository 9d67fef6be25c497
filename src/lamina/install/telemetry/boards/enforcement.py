"""How limits work on the containers and claims of chosen namespaces."""

from lamina.install.telemetry.boards import CLAIM_LEGEND, NAMESPACE, OF_CLAIM, OF_POD, POD_LEGEND
from lamina.install.telemetry.panels import Query, counted, graph

_RECENT = f"{NAMESPACE}[$__rate_interval]"

PANELS = (
    graph(
        "Threads that wait for their share", counted("threads"),
        "Seconds of waiting per second: 2 means that two threads wait all the time, so launches are late. Request more "
        "compute, or a latency class for pods that answer requests.",
        Query(f"sum by ({OF_POD}) (rate(lamina_container_waited_seconds_total{_RECENT}))", POD_LEGEND),
    ),
    graph(
        "Launch window", "s",
        "For how long a container begins launches in each period of 20 ms; 0 if it always may. A launch outside of it "
        "waits for at most the rest of the period. A small window means that several containers keep the GPU busy.",
        Query(f"max by ({OF_POD}) (lamina_container_launch_window_seconds{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "Length of launches", "s",
        "What a launch takes on the GPU, on average. A request of a neighbor waits for one that runs already, so "
        "containers whose requests come first should not be next to launches that are longer than they can wait.",
        Query(f"max by ({OF_POD}) (lamina_container_launch_seconds{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "Threads of claims that wait", counted("threads"),
        "Seconds of waiting per second, for each request of a ResourceClaim. Make the claim's part of the compute "
        "larger if it is always above 0.",
        Query(f"sum by ({OF_CLAIM}) (rate(lamina_claim_waited_seconds_total{_RECENT}))", CLAIM_LEGEND),
    ),
    graph(
        "Refused allocations", counted("allocations"),
        "Allocations beyond the limit, which end with CUDA error 2 in the program. Request more memory, or configure "
        "the program to use less.",
        Query(f"sum by ({OF_POD}) (increase(lamina_container_memory_refusals_total{_RECENT}))", POD_LEGEND),
    ),
    graph(
        "Refused allocations of claims", counted("allocations"),
        "Allocations beyond the limit of a request of a ResourceClaim, by all its containers. Make the claim larger.",
        Query(f"sum by ({OF_CLAIM}) (increase(lamina_claim_memory_refusals_total{_RECENT}))", CLAIM_LEGEND),
    ),
    graph(
        "Memory in host memory because the GPU was full", "bytes",
        "Memory that went to the host, where programs run slower. Lower `sharing.memoryScaling`, or move a pod.",
        Query(f"sum by ({OF_POD}) (lamina_container_memory_spilled_bytes{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "Borrowed memory", "bytes",
        "Memory that containers use beyond what is guaranteed to them. They give it back when others need it, so "
        "request what has to stay.",
        Query(f"sum by ({OF_POD}) (lamina_container_memory_borrowed_bytes{NAMESPACE})", POD_LEGEND),
    ),
    graph(
        "GPU time", "percent",
        "Percent of one GPU's time that each container used, and its share. Above the share, it uses time that others "
        "leave; at a cap it stays below.",
        Query(f"100 * sum by ({OF_POD}) (rate(lamina_container_busy_seconds_total{_RECENT}))", POD_LEGEND),
        Query(f"sum by ({OF_POD}) (lamina_container_cores_percent{NAMESPACE})", f"share of {POD_LEGEND}"),
    ),
    graph(
        "Memory by kind", "bytes",
        "Memory of all containers by kind of allocation. `foreign` belongs to no process of the container: look at who "
        "runs there.",
        Query(f"sum by (kind) (lamina_container_memory_used_bytes{NAMESPACE})", "{{kind}}"),
    ),
    graph(
        "Containers by what limits their memory", counted("containers"),
        "`none` shares a GPU by time alone, without a limit of memory. For hostile code, use `mig`, `whole` or "
        "`driver`.",
        Query(f"count by (enforcer) (lamina_container_enforcer{NAMESPACE})", "{{enforcer}}"),
    ),
)  # fmt: skip
