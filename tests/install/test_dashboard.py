"""The dashboard in the cluster: off by default, with the right to read and nothing more, and its probes answered."""

from typing import Any

from lamina.install import values
from lamina.install.chart import objects
from lamina.install.names import DASHBOARD

DASHBOARD_PORT = 9396


def made(*settings: str) -> dict[str, Any]:
    """The objects of the dashboard, by kind."""
    rendered = objects(values.plain(values.read([], settings)), (1, 36, 0))
    return {each["kind"]: each for each in rendered if each["metadata"]["name"] == DASHBOARD}


def test_it_is_off_by_default() -> None:
    assert made() == {}


def test_it_may_read_and_review_and_change_nothing() -> None:
    parts = made("dashboard.enabled=true")
    rules = [*parts["ClusterRole"]["rules"], *parts["Role"]["rules"]]
    changing = {
        resource for rule in rules if set(rule["verbs"]) - {"get", "list", "watch"} for resource in rule["resources"]
    }
    assert changing == {"tokenreviews", "subjectaccessreviews"}
    assert {resource for rule in rules for resource in rule["resources"]}.isdisjoint({"secrets", "pods/exec"})


def test_its_service_and_probes_reach_the_port_it_binds() -> None:
    parts = made("dashboard.enabled=true", "dashboard.metrics=http://prometheus/federate")
    [container] = parts["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["dashboard", f"--bind=:{DASHBOARD_PORT}"]
    assert {"name": "LAMINA_DASHBOARD_METRICS", "value": "http://prometheus/federate"} in container["env"]
    assert [port["containerPort"] for port in container["ports"]] == [DASHBOARD_PORT]
    assert {container[kind]["httpGet"]["path"] for kind in ("livenessProbe", "readinessProbe")} == {
        "/healthz",
        "/readyz",
    }
    [port] = parts["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "https")
    [rule] = parts["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {"ports": [{"port": DASHBOARD_PORT, "protocol": "TCP"}]}
