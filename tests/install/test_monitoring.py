"""Dashboards and rules ask only for what controller and agents serve, and ship with the chart when they are wanted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate.metrics import series
from lamina.install import values
from lamina.install.chart import objects
from lamina.install.telemetry.alerts import ALERTS
from lamina.install.telemetry.dashboards import DASHBOARDS, dashboard
from lamina.install.telemetry.rules import RECORDED, rules
from tests.install.promql import read

SERVED = series()
RUNBOOKS = (Path(__file__).parents[2] / "docs/how-to/alerts.md").read_text()
QUERIES = [
    *((f"{name}: {panel.title}", query.expr) for name, (_, _, panels) in DASHBOARDS.items() for panel in panels
      for query in panel.queries),
    *RECORDED.items(),
    *((alert.name, alert.expr) for alert in ALERTS),
]  # fmt: skip


def unknown(query: str) -> list[str]:
    """What of a query no component serves."""
    found = read(query)
    names = [name for name in found.matched if name not in SERVED]
    labels = {label for name in found.matched for label in SERVED.get(name, ())}
    matched = [f"{name}{{{label}}}" for name, several in found.matched.items() for label in several
               if label not in SERVED.get(name, ())]  # fmt: skip
    return [*names, *matched, *sorted(found.grouped - labels)]


@pytest.mark.parametrize(("where", "query"), QUERIES)
def test_a_query_asks_for_series_and_labels_that_are_served(where: str, query: str) -> None:
    assert unknown(query) == []
    assert read(query).matched, "it asks for nothing"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("lamina_leading", []),
        ("sum(lamina_leads)", ["lamina_leads"]),
        ('sum by (gpu) (lamina_gpu_healthy{node="a"})', []),
        ('lamina_gpu_healthy{pod="a"}', ["lamina_gpu_healthy{pod}"]),
        ("sum by (pod) (lamina_gpu_healthy)", ["pod"]),
        ("rate(lamina_decision_seconds_bucket[5m]) > 0 unless on (le) x offset 1h", ["x"]),
        ("lamina_decisions", ["lamina_decisions"]),
        ("lamina_mps_ready == bool 0 or vector(0)", []),
    ],
)
def test_what_is_not_served_is_found(query: str, expected: list[str]) -> None:
    assert unknown(query) == expected


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_has_places_legends_and_variables_that_exist(name: str) -> None:
    made = dashboard(name)
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and all(x < 24 for x, _ in cells), panel["title"]
        taken |= cells
        for target in panel["targets"]:
            grouped, expr = read(target["expr"]).grouped, target["expr"]
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            served = {label for each in read(expr).matched for label in SERVED[each]}
            assert legend <= (grouped or served), panel["title"]
    variables = {variable["name"] for variable in made["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(made["panels"]))) - {"__rate_interval"}
    assert used == variables
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_runbook_and_its_summary_names_labels_of_its_query(alert: Any) -> None:
    found = read(alert.expr)
    labels = set(found.grouped) or {label for name in found.matched for label in SERVED[name]}
    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= labels
    assert f"\n## {alert.name}\n" in RUNBOOKS


def test_no_runbook_is_left_over() -> None:
    assert re.findall(r"^## (Lamina\w+)$", RUNBOOKS, re.MULTILINE) == [alert.name for alert in ALERTS]


def test_they_ship_only_when_they_are_wanted() -> None:
    def made(*settings: str) -> dict[str, Any]:
        read_values = values.plain(values.read([], settings))
        rendered = objects(read_values, (1, 36, 0))
        return {f"{each['kind']} {each['metadata']['name']}": each for each in rendered}

    plain = made()
    full = made("metrics.dashboards=true", "metrics.rules=true", "metrics.ruleLabels={release: prometheus}")
    more = {name: full[name] for name in full.keys() - plain.keys()}
    assert more.keys() == {"PrometheusRule lamina", *(f"ConfigMap lamina-dashboard-{name}" for name in DASHBOARDS)}
    rule = more.pop("PrometheusRule lamina")
    assert rule["spec"] == rules() and rule["metadata"]["labels"]["release"] == "prometheus"
    for config_map in more.values():
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((file, text),) = config_map["data"].items()
        assert json.loads(text)["uid"] == file.removesuffix(".json")
    assert yaml.safe_dump(full)


@pytest.mark.parametrize("address", ["https://docs.example/lamina", "https://docs.example/lamina/"])
def test_alerts_lead_to_a_copy_of_the_site(address: str) -> None:
    read_values = values.plain(values.read([], ["metrics.rules=true", f"metrics.runbooks={address}"]))
    (rule,) = (each for each in objects(read_values, (1, 36, 0)) if each["kind"] == "PrometheusRule")
    alerts = {each["alert"]: each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each}
    assert {name: each["annotations"]["runbook_url"] for name, each in alerts.items()} == {
        alert.name: f"https://docs.example/lamina/how-to/alerts/#{alert.name.lower()}" for alert in ALERTS
    }
