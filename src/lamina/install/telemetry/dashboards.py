"""The dashboards: cluster, node, tenant, enforcement and control plane."""

import json
from typing import Any

from lamina.core.component_names import documentation
from lamina.install.telemetry.boards import cluster, control_plane, enforcement, node, tenant
from lamina.install.telemetry.panels import Panel, placed

DASHBOARDS: dict[str, tuple[str, tuple[str, ...], tuple[Panel, ...]]] = {
    "cluster": ("Lamina: cluster", (), cluster.PANELS),
    "node": ("Lamina: node", ("node",), node.PANELS),
    "tenant": ("Lamina: tenant", ("namespace",), tenant.PANELS),
    "enforcement": ("Lamina: enforcement", ("namespace",), enforcement.PANELS),
    "control-plane": ("Lamina: control plane", (), control_plane.PANELS),
}
"""Title, variables and panels by name."""
_VARIABLES = {
    "node": "label_values(lamina_gpus_read_timestamp_seconds, node)",
    "namespace": "label_values(lamina_container_memory_limit_bytes, namespace)",
}
_TAG = "lamina"
_PAGES = {"Alerts and what to do": "how-to/alerts.md", "What the metrics mean": "reference/metrics.md"}


def dashboard(name: str) -> dict[str, Any]:
    """One dashboard, as Grafana imports it."""
    title, variables, panels = DASHBOARDS[name]
    return {
        "uid": f"lamina-{name}",
        "title": title,
        "tags": [_TAG],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "links": [_others(), *(_page(title, path) for title, path in _PAGES.items())],
        "templating": {"list": [_datasource(), *(_variable(each) for each in variables)]},
        "panels": placed(panels),
    }


def dashboard_text(name: str) -> str:
    """One dashboard as a file."""
    return json.dumps(dashboard(name), indent=1) + "\n"


def _others() -> dict[str, Any]:
    """A link to each dashboard of ours, which keeps the time and the values of variables."""
    link = {"title": "Lamina", "type": "dashboards", "tags": [_TAG], "asDropdown": False, "icon": "dashboard"}
    return link | {"includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}


def _page(title: str, path: str) -> dict[str, Any]:
    link = {"title": title, "type": "link", "tags": [], "asDropdown": False, "icon": "doc"}
    return link | {
        "includeVars": False,
        "keepTime": False,
        "targetBlank": True,
        "tooltip": "",
        "url": documentation(path),
    }


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
