"""Recording rules and alerts, as Prometheus reads them and as the spec of a PrometheusRule has them."""

from typing import Any

import yaml

from lamina.core.component_names import documentation
from lamina.install.telemetry.alerts import ALERTS, CAPACITY, GRANTED, Alert

RUNBOOKS = "how-to/alerts.md"

REQUESTED = 'sum by (namespace, model, part) (rate(lamina_workload_gpu_seconds_total{figure="requested"}[5m]))'
RECORDED = {
    "lamina:gpu_memory_granted:ratio": f"{GRANTED} / {CAPACITY}",
    "lamina:cluster_memory_granted:ratio": f"sum({GRANTED}) / sum({CAPACITY})",
    "lamina:namespace_memory_limit_bytes:sum": "sum by (namespace) (lamina_container_memory_limit_bytes)",
    "lamina:namespace_memory_used_bytes:sum": "sum by (namespace) (lamina_container_memory_used_bytes)",
    "lamina:namespace_busy_seconds:rate5m": "sum by (namespace) (rate(lamina_container_busy_seconds_total[5m]))",
    "lamina:namespace_gpus_requested:rate5m": REQUESTED,
    "lamina:namespace_cost_per_hour:rate5m": (
        f"sum by (namespace) ({REQUESTED} * on (model, part) group_left () "
        "max by (model, part) (lamina_gpu_price_per_hour))"
    ),
    "lamina:container_waited_seconds:rate5m": (
        "sum by (node, namespace, pod, container, gpu) (rate(lamina_container_waited_seconds_total[5m]))"
    ),
    "lamina:decision_seconds:p99_rate5m": (
        "histogram_quantile(0.99, sum by (verb, le) (rate(lamina_decision_seconds_bucket[5m])))"
    ),
}
"""Queries by the name under which Prometheus stores their results."""


def rules() -> dict[str, Any]:
    """Two groups of rules."""
    recorded = [{"record": name, "expr": expr} for name, expr in RECORDED.items()]
    return {
        "groups": [
            {"name": "lamina.recorded", "rules": recorded},
            {"name": "lamina.alerts", "rules": [_rule(alert) for alert in ALERTS]},
        ]
    }


def rules_text() -> str:
    """The rules as a file."""
    return yaml.safe_dump(rules(), sort_keys=False, width=116)


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.hold,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook_url": documentation(f"{RUNBOOKS}#{alert.name.lower()}")},
    }
