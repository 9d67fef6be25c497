"""Panels of a dashboard, in the form that Grafana 9 and later reads, and their places."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

_COLUMNS = 24
DETAILS = {"node": "lamina-node", "namespace": "lamina-tenant"}
"""The dashboard about one value of a label."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(Struct, frozen=True):
    """One query in PromQL and the legend of its series, with labels in double braces."""

    expr: str
    legend: str = ""


class Panel(Struct, frozen=True):
    """One panel. `kind` is Grafana's name of its type, `unit` Grafana's name of its unit. The description says what the
    figure means and what to do about it."""

    title: str
    queries: tuple[Query, ...]
    unit: str
    description: str
    kind: str = "timeseries"
    width: int = 12
    height: int = 8


def number(title: str, expr: str, unit: str, description: str) -> Panel:
    """One number."""
    return Panel(title, (Query(expr),), unit, description, "stat", width=4, height=4)


def graph(title: str, unit: str, description: str, *queries: Query) -> Panel:
    """Lines over time."""
    return Panel(title, queries, unit, description)


def rows(title: str, expr: str, unit: str, description: str) -> Panel:
    """A table of the current series, with a column for each label."""
    return Panel(title, (Query(expr),), unit, description, "table", width=24)


def counted(what: str) -> str:
    """The unit of a number of things, which Grafana shows after it."""
    return f"suffix:{what}"


def placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """All panels from left to right, and then in the next line."""
    made, x, y, tallest = [], 0, 0, 0
    for number_, panel in enumerate(panels, 1):
        if x + panel.width > _COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        position = {"h": panel.height, "w": panel.width, "x": x, "y": y}
        made.append(_panel(panel, number_, position))
        x, tallest = x + panel.width, max(tallest, panel.height)
    return made


def _panel(panel: Panel, number_: int, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number_,
        "title": panel.title,
        "description": panel.description,
        "type": panel.kind,
        "datasource": _SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "links": _details(panel)}, "overrides": []},
        "options": _options(panel.kind),
        "targets": [_target(panel, query, chr(ord("A") + index)) for index, query in enumerate(panel.queries)],
    }


def _details(panel: Panel) -> list[dict[str, Any]]:
    """Links from a line to the dashboard of its node or namespace, for the same time."""
    links = []
    for label, dashboard in DETAILS.items():
        if any(f"{{{{{label}}}}}" in query.legend for query in panel.queries):
            value = f"${{__field.labels.{label}}}"
            url = f"/d/{dashboard}?var-{label}={value}&${{datasource:queryparam}}&${{__url_time_range}}"
            links.append({"title": f"Show the {label} {value}", "url": url})
    return links


def _options(kind: str) -> dict[str, Any]:
    if kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    if kind == "timeseries":
        return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"showHeader": True}


def _target(panel: Panel, query: Query, name: str) -> dict[str, Any]:
    target = {"refId": name, "datasource": _SOURCE, "expr": query.expr, "legendFormat": query.legend or "__auto"}
    return target | ({"format": "table", "instant": True} if panel.kind == "table" else {})
