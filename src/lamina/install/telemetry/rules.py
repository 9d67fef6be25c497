"""Recording rules and alerts, as Prometheus reads them and as the spec of a PrometheusRule has them."""

from typing import Any

import yaml

from lamina.core.component_names import documentation
from lamina.install.telemetry.alerts import ALERTS, Alert
from lamina.install.telemetry.queries import CAPACITY, GRANTED, cost, requested

RUNBOOKS = "how-to/alerts.md"

RECORDED = {
    "lamina:gpu_memory_granted:ratio": f"{GRANTED} / {CAPACITY}",
    "lamina:cluster_memory_granted:ratio": f"sum({GRANTED}) / sum({CAPACITY})",
    "lamina:namespace_memory_limit_bytes:sum": "sum by (namespace) (lamina_container_memory_limit_bytes)",
    "lamina:namespace_memory_used_bytes:sum": "sum by (namespace) (lamina_container_memory_used_bytes)",
    "lamina:namespace_busy_seconds:rate5m": "sum by (namespace) (rate(lamina_container_busy_seconds_total[5m]))",
    "lamina:namespace_gpus_requested:rate5m": requested("namespace"),
    "lamina:namespace_cost_per_hour:rate5m": cost("namespace"),
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
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": documentation(f"{RUNBOOKS}#{alert.name.lower()}"),
        },
    }
