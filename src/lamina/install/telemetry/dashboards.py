"""The dashboards: cluster, node, tenant, enforcement and control plane."""

import json
from typing import Any

from lamina.install.telemetry.alerts import CAPACITY, GRANTED, SET_ASIDE
from lamina.install.telemetry.panels import Panel, Query, graph, number, placed, rows

_SHARES = "max by (node, gpu, model) (lamina_gpu_shares_granted)"
_CORES = "max by (node, gpu, model) (lamina_gpu_cores_granted_percent)"
_OF_NODE = '{node=~"$node"}'
_OF_TENANT = '{namespace=~"$namespace"}'
_POD = "namespace, pod, container"
_CONTAINER_LEGEND = "{{namespace}}/{{pod}} {{container}}"
_GPU_LEGEND = "{{node}} {{gpu}}"

CLUSTER = (
    number("GPUs", f"count({CAPACITY})"),
    number("Nodes with GPUs", "count(max by (node) (lamina_gpu_memory_capacity_mebibytes))"),
    number("Memory that can be granted", f"sum({CAPACITY})", "mbytes"),
    number("Memory granted", f"sum({GRANTED}) / sum({CAPACITY})", "percentunit"),
    number("Pods that fit nowhere", "sum(lamina_pods_pending) or vector(0)"),
    number("Unhealthy GPUs", "count(lamina_gpu_healthy == 0) or vector(0)"),
    graph("Memory granted by node", Query(f"sum by (node) ({GRANTED})", "{{node}}"), unit="mbytes"),
    graph("Memory used by node", Query("sum by (node) (lamina_gpu_memory_used_bytes)", "{{node}}"), unit="bytes"),
    graph("Compute granted by node", Query(f"sum by (node) ({_CORES})", "{{node}}"), unit="percent"),
    graph("Utilization by node", Query("avg by (node) (lamina_gpu_utilization_percent)", "{{node}}"), unit="percent"),
    graph("Shares by model", Query(f"sum by (model) ({_SHARES})", "{{model}}")),
    graph(
        "Memory that is not granted, by model",
        Query(f"sum by (model) ({CAPACITY}) - sum by (model) ({GRANTED})", "{{model}}"),
        unit="mbytes",
    ),
    graph("Pods that fit nowhere, by nearest cause", Query("sum by (cause) (lamina_pods_pending)", "{{cause}}")),
    graph(
        "Memory limits by namespace",
        Query("sum by (namespace) (lamina_container_memory_limit_bytes)", "{{namespace}}"),
        unit="bytes",
    ),
)
NODE = (
    graph("Memory used", Query(f"lamina_gpu_memory_used_bytes{_OF_NODE}", _GPU_LEGEND), unit="bytes"),
    graph("Utilization", Query(f"lamina_gpu_utilization_percent{_OF_NODE}", _GPU_LEGEND), unit="percent"),
    graph(
        "Memory granted",
        Query(f"max by (node, gpu) (lamina_gpu_memory_granted_mebibytes{_OF_NODE})", _GPU_LEGEND),
        unit="mbytes",
    ),
    graph("Shares", Query(f"max by (node, gpu) (lamina_gpu_shares_granted{_OF_NODE})", _GPU_LEGEND)),
    graph(
        "Memory of containers",
        Query(f"sum by ({_POD}) (lamina_container_memory_used_bytes{_OF_NODE})", _CONTAINER_LEGEND),
        unit="bytes",
    ),
    graph(
        "Utilization of containers",
        Query(f"sum by ({_POD}) (lamina_container_utilization_percent{_OF_NODE})", _CONTAINER_LEGEND),
        unit="percent",
    ),
    graph(
        "Memory of MIG devices", Query(f"lamina_mig_memory_used_bytes{_OF_NODE}", "{{mig}} {{profile}}"), unit="bytes"
    ),
    graph(
        "Time since the agent read its GPUs",
        Query(f"time() - lamina_gpus_read_timestamp_seconds{_OF_NODE}", "{{node}}"),
        unit="s",
    ),
    rows("Health of GPUs", f"max by (node, gpu, model, reason) (lamina_gpu_healthy{_OF_NODE})"),
    rows("MPS daemons", f"max by (node, gpu, state) (lamina_mps_ready{_OF_NODE})"),
)
TENANT = (
    number("Memory limit", f"sum(lamina_container_memory_limit_bytes{_OF_TENANT})", "bytes"),
    number("Memory used", f"sum(lamina_container_memory_used_bytes{_OF_TENANT})", "bytes"),
    number("Compute requested", f"sum(lamina_container_cores_percent{_OF_TENANT})", "percent"),
    number("Compute used", f"sum(lamina_container_utilization_percent{_OF_TENANT})", "percent"),
    number("Containers", f"count(count by ({_POD}) (lamina_container_memory_limit_bytes{_OF_TENANT}))"),
    number("Pods that fit nowhere", f"sum(lamina_pods_pending{_OF_TENANT}) or vector(0)"),
    graph(
        "Memory used",
        Query(f"sum by ({_POD}) (lamina_container_memory_used_bytes{_OF_TENANT})", _CONTAINER_LEGEND),
        unit="bytes",
    ),
    graph(
        "Memory used of the limit",
        Query(
            f"sum by ({_POD}) (lamina_container_memory_used_bytes{_OF_TENANT})"
            f" / sum by ({_POD}) (lamina_container_memory_limit_bytes{_OF_TENANT})",
            _CONTAINER_LEGEND,
        ),
        unit="percentunit",
    ),
    graph(
        "Memory of the limit that was never used",
        Query(
            f"sum by ({_POD}) (lamina_container_memory_limit_bytes{_OF_TENANT})"
            f" - sum by ({_POD}) (lamina_container_memory_peak_bytes{_OF_TENANT})",
            _CONTAINER_LEGEND,
        ),
        unit="bytes",
        description="Containers that request much more than they ever used.",
    ),
    graph(
        "Utilization",
        Query(f"sum by ({_POD}) (lamina_container_utilization_percent{_OF_TENANT})", _CONTAINER_LEGEND),
        unit="percent",
    ),
    graph(
        "Pods that fit nowhere, by nearest cause",
        Query(f"sum by (namespace, cause) (lamina_pods_pending{_OF_TENANT})", "{{namespace}} {{cause}}"),
    ),
    graph(
        "Longest time that a pod has fit nowhere",
        Query(
            f"max by (namespace, cause) (lamina_pods_pending_longest_seconds{_OF_TENANT})", "{{namespace}} {{cause}}"
        ),
        unit="s",
    ),
)
ENFORCEMENT = (
    graph(
        "Threads that wait for their share",
        Query(
            f"sum by ({_POD}) (rate(lamina_container_waited_seconds_total{_OF_TENANT}[$__rate_interval]))",
            _CONTAINER_LEGEND,
        ),
        description="Seconds of waiting per second: 2 means that two threads wait all the time.",
    ),
    graph(
        "Refused allocations",
        Query(
            f"sum by ({_POD}) (increase(lamina_container_memory_refusals_total{_OF_TENANT}[$__rate_interval]))",
            _CONTAINER_LEGEND,
        ),
    ),
    graph(
        "Memory in host memory because the GPU was full",
        Query(f"sum by ({_POD}) (lamina_container_memory_spilled_bytes{_OF_TENANT})", _CONTAINER_LEGEND),
        unit="bytes",
    ),
    graph(
        "GPU time",
        Query(
            f"100 * sum by ({_POD}) (rate(lamina_container_busy_seconds_total{_OF_TENANT}[$__rate_interval]))",
            _CONTAINER_LEGEND,
        ),
        Query(f"sum by ({_POD}) (lamina_container_cores_percent{_OF_TENANT})", f"share of {_CONTAINER_LEGEND}"),
        unit="percent",
    ),
    graph(
        "Memory by kind",
        Query(f"sum by (kind) (lamina_container_memory_used_bytes{_OF_TENANT})", "{{kind}}"),
        unit="bytes",
    ),
    graph(
        "Containers by what limits their memory",
        Query(f"count by (enforcer) (lamina_container_enforcer{_OF_TENANT})", "{{enforcer}}"),
    ),
)
CONTROL_PLANE = (
    number("Replicas that lead", "sum(lamina_leading) or vector(0)"),
    number("Changes of the leader", "max(lamina_leader_transitions_total)"),
    number("Configuration refused", "max(lamina_configuration_refused)"),
    number("First certificate ends in", "min(lamina_certificate_expiry_timestamp_seconds) - time()", "s"),
    number("Agents", "count(lamina_gpus_read_timestamp_seconds)"),
    number("Pods that defragmentation moved", "sum(lamina_defragmentation_moved_pods_total)"),
    graph(
        "Decisions",
        Query("sum by (verb, outcome) (rate(lamina_decisions_total[$__rate_interval]))", "{{verb}} {{outcome}}"),
        unit="ops",
    ),
    graph(
        "Time of decisions, 99th percentile",
        Query(
            "histogram_quantile(0.99, sum by (verb, le) (rate(lamina_decision_seconds_bucket[$__rate_interval])))",
            "{{verb}}",
        ),
        unit="s",
    ),
    graph(
        "Time of decisions, mean",
        Query(
            "sum by (verb) (rate(lamina_decision_seconds_sum[$__rate_interval]))"
            " / sum by (verb) (rate(lamina_decision_seconds_count[$__rate_interval]))",
            "{{verb}}",
        ),
        unit="s",
    ),
    graph("GPUs that defragmentation freed", Query("sum by (outcome) (lamina_defragmentation_total)", "{{outcome}}")),
    rows("Objects set aside in the last hour", SET_ASIDE),
)
DASHBOARDS: dict[str, tuple[str, tuple[str, ...], tuple[Panel, ...]]] = {
    "cluster": ("Lamina: cluster", (), CLUSTER),
    "node": ("Lamina: node", ("node",), NODE),
    "tenant": ("Lamina: tenant", ("namespace",), TENANT),
    "enforcement": ("Lamina: enforcement", ("namespace",), ENFORCEMENT),
    "control-plane": ("Lamina: control plane", (), CONTROL_PLANE),
}
"""Title, variables and panels by name."""
_VARIABLES = {
    "node": "label_values(lamina_gpus_read_timestamp_seconds, node)",
    "namespace": "label_values(lamina_container_memory_limit_bytes, namespace)",
}


def dashboard(name: str) -> dict[str, Any]:
    """One dashboard, as Grafana imports it."""
    title, variables, panels = DASHBOARDS[name]
    return {
        "uid": f"lamina-{name}",
        "title": title,
        "tags": ["lamina"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_datasource(), *(_variable(each) for each in variables)]},
        "panels": placed(panels),
    }


def dashboard_text(name: str) -> str:
    """One dashboard as a file."""
    return json.dumps(dashboard(name), indent=1) + "\n"


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": _VARIABLES[name], "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
