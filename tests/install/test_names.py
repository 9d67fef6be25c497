"""The chart is written by hand, so each name that it shares with the programs is compared here."""

import re

import pytest

from lamina.agent.containers.cdi import VOLUMES
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.configuration.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.core import component_names as core
from lamina.core.component_names import API_VERSION
from lamina.dialects.claim_gate import GATE
from lamina.dialects.registry import label_prefixes
from lamina.install import rights
from lamina.install.chart import chart, definitions, namespace_object, objects
from lamina.install.names import AGENT, CONTROLLER, DASHBOARD, METRICS_PORT, MPS, PART_OF, SCHEDULER, chosen, labels
from lamina.install.rights_of_commands import SEEN
from lamina.install.scheduler_config import EXTENDER_CERTIFICATES, scheduler_config
from lamina.install.values import Values, plain
from lamina.ports.kube import Object
from lamina.ports.kubelet.servers import PLUGIN_FOLDER, POD_RESOURCES_SOCKET, REGISTRY_FOLDER

PARTS = (CONTROLLER, SCHEDULER, AGENT, MPS, DASHBOARD)
FILES = chart()
INSTANCE = "app.kubernetes.io/instance"
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
KUBELET = "{{ .kubeletDir }}"


def everything() -> list[Object]:
    """All objects of the chart but those of other versions of Kubernetes."""
    values = plain(Values())
    for section, keys in {
        "agent": ("mps", "mig"),
        "controller": ("defragmentation", "idleShares", "borrowers", "preemption", "extenderHttp"),
        "dashboard": ("enabled",),
        "dra": ("enabled", "bindingConditions"),
        "metrics": ("protected",),
    }.items():
        values[section] |= dict.fromkeys(keys, True)
    return objects(values, (1, 36, 0))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("configuration.yaml", f"  name: {CONFIG_MAP}\n"),
        ("configuration.yaml", f"  {CONFIG_MAP_KEY}: "),
        ("controller/services.yaml", f"name: {core.ADMISSION_SERVICE}, "),
        ("controller/services.yaml", f"{core.LEADER_LABEL}: 'true'"),
        ("controller/deployment.yaml", f"metadata: {{name: {core.WEBHOOKS}, "),
        ("controller/rights.yaml", f"[{core.ADMISSION_SECRET}, {core.EXTENDER_SECRET}, {core.EXTENDER_CLIENT_SECRET}]"),
        ("controller/rights.yaml", f"# `{core.LEADER_LEASE}`, `{core.TURNS_LEASE}` and "),
        ("controller/rights.yaml", f"resourceNames: [{', '.join(each['metadata']['name'] for each in definitions())}]"),
        ("scheduler/deployment.yaml", f'default "{core.EXTENDER_CLIENT_SECRET}"'),
        ("scheduler/deployment.yaml", f"mountPath: {EXTENDER_CERTIFICATES}, readOnly: true"),
        ("scheduler/deployment.yaml", f"--config=/etc/lamina/{CONFIG_MAP_KEY}"),
        ("agent/daemon-set.yaml", f"name: all-gpus, mountPath: {VOLUMES}/all"),
        ("agent/daemon-set.yaml", f"LAMINA_MPS_ROOT, value: {DEFAULT_MPS_ROOT}"),
        ("agent/daemon-set.yaml", f"device-plugins, mountPath: {KUBELET}/{PLUGIN_FOLDER}}}"),
        ("agent/daemon-set.yaml", f"pod-resources, mountPath: {KUBELET}/{POD_RESOURCES_SOCKET.parent}}}"),
        ("agent/daemon-set.yaml", f"plugins-registry, mountPath: {KUBELET}/{REGISTRY_FOLDER}}}"),
        ("agent/mps.yaml", f"name: mps, mountPath: {DEFAULT_MPS_ROOT}, "),
        ("policies.yaml", f"gate.name == '{GATE}'"),
        ("policies.yaml", f"paramKind: {{apiVersion: {API_VERSION}, kind: Inventory}}"),
    ],
)
def test_the_chart_has_the_names_of_the_programs(path: str, text: str) -> None:
    assert text in FILES[f"templates/{path}"]


def test_workloads_have_the_names_and_labels_by_which_commands_find_them() -> None:
    made = {each["metadata"]["name"]: each for each in everything() if each["kind"] in ("Deployment", "DaemonSet")}
    assert made.keys() == {*PARTS}
    for part, each in made.items():
        assert each["metadata"]["labels"].items() >= labels(part).items()
        assert each["spec"]["selector"] == {"matchLabels": chosen(part)}
        assert each["spec"]["template"]["metadata"]["labels"] == labels(part) | {INSTANCE: "lamina"}
        assert each["spec"]["template"]["spec"]["serviceAccountName"] == part


def test_objects_have_the_labels_that_kubernetes_and_helm_recommend() -> None:
    names = {"name", "instance", "version", "managed-by", "part-of"}
    recommended = {f"app.kubernetes.io/{name}" for name in names} | {"helm.sh/chart"}
    values = plain(Values())
    values["serviceMonitor"] |= {"enabled": True, "labels": {"release": "prometheus"}}
    values["metrics"] |= {"rules": True, "dashboards": True, "ruleLabels": {"release": "prometheus"}}
    monitoring = objects(values, (1, 36, 0))
    for each in (*everything(), *monitoring):
        assert each["metadata"]["labels"].keys() >= recommended, each["metadata"]["name"]
        assert [text for text in each["metadata"]["labels"].values() if not LABEL.fullmatch(text)] == []
    own = {each["kind"]: each["metadata"]["labels"] for each in monitoring}
    assert own["ServiceMonitor"]["release"] == own["PrometheusRule"]["release"] == "prometheus"
    assert own["ConfigMap"]["grafana_dashboard"] == "1"


def test_uninstallation_finds_all_of_it_by_a_label() -> None:
    for each in (namespace_object(core.DEFAULT_NAMESPACE), *definitions(), *everything()):
        assert each["metadata"]["labels"].items() >= PART_OF.items(), each["metadata"]["name"]
        assert each["metadata"].get("namespace", core.DEFAULT_NAMESPACE) in (core.DEFAULT_NAMESPACE, "kube-system")


def test_commands_ask_agents_for_metrics_where_they_serve_them() -> None:
    (agents,) = (each for each in everything() if (each["kind"], each["metadata"]["name"]) == ("DaemonSet", AGENT))
    (container,) = agents["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}]
    assert f"--metrics-bind=:{METRICS_PORT}" in container["args"]


def test_the_scheduler_may_use_its_lease() -> None:
    from lamina.configuration import DEFAULT
    from lamina.install.scheduler_config import ExtenderAccess, extender_url

    access = ExtenderAccess(extender_url(core.DEFAULT_NAMESPACE), EXTENDER_CERTIFICATES, core.DEFAULT_NAMESPACE)
    elected = scheduler_config(DEFAULT, version=(1, 36, 0), access=access, weight=10)["leaderElection"]
    assert rights.SCHEDULER_OWN[1].names == (elected["resourceName"],)


def test_agents_may_change_the_labels_of_all_dialects() -> None:
    (message,) = (line for line in FILES["templates/policies.yaml"].splitlines() if "labels that begin with" in line)
    assert set(message.rpartition("begin with ")[2].split(" or ")) >= set(label_prefixes())
    expression = FILES["templates/policies.yaml"].partition(message)[2].partition("---")[0]
    assert [prefix for prefix in label_prefixes() if expression.count(f"name.startsWith('{prefix}')") != 2] == []


def test_viewers_have_the_rights_of_the_commands_that_only_read() -> None:
    assert rights.VIEW == SEEN
