"""Dashboards and rules ask only for what controller and agents serve, and ship with the chart when they are wanted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from typer.main import get_command

from docs.generate.metrics import series
from lamina.cli.main import app
from lamina.core.component_names import SITE, documentation
from lamina.install import values
from lamina.install.chart import objects
from lamina.install.telemetry.alerts import ALERTS
from lamina.install.telemetry.dashboards import DASHBOARDS, dashboard
from lamina.install.telemetry.rules import RECORDED, rules
from tests.install.promql import read
from tests.words import avoided

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
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(made["panels"]))) - {
        "__rate_interval",
        "__field",
        "__url_time_range",
    }
    assert used == variables
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])


PANELS = [(name, panel) for name in DASHBOARDS for panel in dashboard(name)["panels"]]
UNITS = {"bytes", "mbytes", "percent", "percentunit", "s", "ops", "bool_yes_no"}
"""Names of Grafana's units that are used here, besides numbers of things."""


@pytest.mark.parametrize(("name", "panel"), PANELS, ids=lambda each: each if isinstance(each, str) else each["title"])
def test_a_panel_says_what_it_means_in_which_unit_and_what_to_do(name: str, panel: Any) -> None:
    text, unit = panel["description"], panel["fieldConfig"]["defaults"]["unit"]
    assert unit in UNITS or re.fullmatch(r"suffix:[a-z A-Z]+", unit)
    assert len(text.split()) >= 8 and text.endswith(".") and ". " in text + " " and avoided_in(text) == []
    for alert in re.findall(r"\bLamina[A-Z]\w+", text):
        assert alert in {each.name for each in ALERTS}
    for words in re.findall(r"`lamina ([^`]+)`", text):
        assert words.split()[0] in get_command(app).commands  # type: ignore[attr-defined]


def avoided_in(text: str) -> list[str]:
    return [word for _, word in avoided(text)]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_leads_to_the_others_and_to_pages(name: str) -> None:
    made = dashboard(name)
    others, *pages = made["links"]
    assert set(others["tags"]) == set(made["tags"]) and others["includeVars"] and others["keepTime"]
    assert [page["url"] for page in pages] == [documentation("how-to/alerts.md"), documentation("reference/metrics.md")]


def test_a_line_leads_to_the_dashboard_of_its_node_or_namespace() -> None:
    made = {each: dashboard(each) for each in DASHBOARDS}
    by_uid = {each["uid"]: each for each in made.values()}
    links = [link for _, panel in PANELS for link in panel["fieldConfig"]["defaults"]["links"]]
    assert len(links) > 10
    for link in links:
        uid, variable = re.match(r"/d/([\w-]+)\?var-(\w+)=", link["url"]).groups()  # type: ignore[union-attr]
        assert variable in {each["name"] for each in by_uid[uid]["templating"]["list"]}


@pytest.mark.parametrize(
    ("what", "metric"),
    [("cost", "lamina_gpu_price_per_hour"), ("idle shares", "lamina_pod_idle_seconds"),
     ("idle GPUs", "lamina_gpu_seconds_total"), ("waiting for a launch", "lamina_container_waited_seconds_total"),
     ("launch windows", "lamina_container_launch_window_seconds"),
     ("lengths of launches", "lamina_container_launch_seconds"), ("claims", "lamina_claim_memory_used_bytes")],
)  # fmt: skip
def test_what_dashboards_are_about(what: str, metric: str) -> None:
    assert any(metric in target["expr"] for _, panel in PANELS for target in panel["targets"]), what


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_own_types_read_all_of_a_dashboard(name: str) -> None:
    """What they do not know, such as a misspelled key, they drop."""
    made = json.loads(json.dumps(dashboard(name)))
    kept = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(made)))
    assert list(lost(made, kept)) == []


def lost(made: Any, kept: Any, path: str = "") -> Iterator[str]:
    """The places of `made` that `kept` lacks or has another value at."""
    match made, kept:
        case dict(), dict():
            for key, value in made.items():
                yield from lost(value, kept.get(key), f"{path}.{key}")
        case list(), list() if len(made) == len(kept):
            for index, pair in enumerate(zip(made, kept, strict=True)):
                yield from lost(*pair, f"{path}[{index}]")
        case _ if made != kept and made not in ([], {}, "", False):
            yield path


def test_a_misspelled_key_of_a_dashboard_is_found() -> None:
    made = json.loads(json.dumps(dashboard("cluster")))
    made["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    kept = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(made)))
    assert list(lost(made, kept)) == [".panels[1].fieldConfig.defaults.units"]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_runbook_and_its_summary_names_labels_of_its_query(alert: Any) -> None:
    found = read(alert.expr)
    labels = set(found.grouped) or {label for name in found.matched for label in SERVED[name]}
    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= labels
    assert set(re.findall(r"\$labels\.(\w+)", alert.description)) <= labels
    assert f"\n## {alert.name}\n" in RUNBOOKS
    assert len(alert.description.split()) >= 8 and alert.description.endswith(".") and not avoided_in(alert.description)


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


@pytest.mark.parametrize("address", ["https://docs.example/lamina", "https://docs.example/lamina/"])
def test_alerts_and_dashboards_lead_to_a_copy_of_the_site(address: str) -> None:
    settings = ["metrics.rules=true", "metrics.dashboards=true", f"metrics.runbooks={address}"]
    made = objects(values.plain(values.read([], settings)), (1, 36, 0))
    (rule,) = (each for each in made if each["kind"] == "PrometheusRule")
    boards = [text for each in made if "-dashboard-" in each["metadata"]["name"] for text in each["data"].values()]
    assert len(boards) == len(DASHBOARDS) and not any(SITE in text for text in boards)
    assert all('"https://docs.example/lamina/how-to/alerts/"' in text for text in boards)
    alerts = {each["alert"]: each for group in rule["spec"]["groups"] for each in group["rules"] if "alert" in each}
    assert {name: each["annotations"]["runbook_url"] for name, each in alerts.items()} == {
        alert.name: f"https://docs.example/lamina/how-to/alerts/#{alert.name.lower()}" for alert in ALERTS
    }
