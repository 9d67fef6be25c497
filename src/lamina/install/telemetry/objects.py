"""The dashboards and rules as objects of a cluster. Their texts are files of the chart."""

from typing import Any

from lamina.core.component_names import NAMESPACE
from lamina.install.telemetry.dashboards import DASHBOARDS, dashboard_text
from lamina.install.telemetry.rules import rules_text
from lamina.install.terms import ChartFile, Given, Value, When

_RULES = "rules.yaml"


def files() -> dict[str, str]:
    """The texts by their path in the chart."""
    return {_path(name): dashboard_text(name) for name in DASHBOARDS} | {_RULES: rules_text()}


def telemetry() -> list[Any]:
    """A ConfigMap for each dashboard, which Grafana's sidecar finds by its labels, and a PrometheusRule."""
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "lamina", "namespace": NAMESPACE, "labels": Value("metrics.ruleLabels")},
        "spec": ChartFile(_RULES, rules_text(), parsed=True),
    }
    wanted = Given(Value("metrics.dashboards"))
    return [*(When(wanted, _config_map(name)) for name in DASHBOARDS), When(Given(Value("metrics.rules")), rule)]


def _path(name: str) -> str:
    return f"dashboards/lamina-{name}.json"


def _config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"lamina-dashboard-{name}",
            "namespace": NAMESPACE,
            "labels": Value("metrics.dashboardLabels"),
        },
        "data": {f"lamina-{name}.json": ChartFile(_path(name), dashboard_text(name))},
    }
