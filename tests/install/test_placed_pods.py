"""On which nodes pods run, in which network, and what a user may add to them."""

from typing import Any

import pytest

from lamina.install import values
from lamina.install.chart import objects
from lamina.install.names import CONTROLLER, chosen
from lamina.ports.kube import Object

COMPONENTS = ("controller", "scheduler", "agent", "dashboard")
ALL = ("dashboard.enabled=true", "agent.mps=true")
PORTS = {"extender": 18445, "extenderHttp": 18080, "metrics": 19395, "admission": 18443, "admissionMetrics": 19396}


def made(*settings: str) -> list[Object]:
    return objects(values.plain(values.read([], [*ALL, *settings])), (1, 36, 0))


def workloads(*settings: str) -> dict[str, Any]:
    found = {each["metadata"]["name"]: each["spec"] for each in made(*settings) if "template" in each.get("spec", {})}
    assert len(found) == 5
    return found


def test_pods_run_where_the_image_can() -> None:
    built = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]}
    for name, each in workloads().items():
        pod = each["template"]["spec"]
        assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}, name
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert terms and all(built in term["matchExpressions"] for term in terms), name


@pytest.mark.parametrize("part", COMPONENTS)
def test_what_a_user_adds_to_pods(part: str) -> None:
    added = (
        f"{part}.podLabels={{team: gpus, app.kubernetes.io/component: other}}",
        f"{part}.podAnnotations={{note: a}}",
        f"{part}.priorityClassName=high",
        f"{part}.nodeSelector={{zone: a}}",
    )
    spec = workloads(*added)[f"lamina-{part}"]
    meta, pod = spec["template"]["metadata"], spec["template"]["spec"]
    assert meta["labels"]["team"] == "gpus" and meta["annotations"]["note"] == "a"
    assert meta["labels"].items() >= spec["selector"]["matchLabels"].items() >= chosen(f"lamina-{part}").items()
    assert pod["priorityClassName"] == "high"
    assert pod["nodeSelector"] == {"zone": "a", "kubernetes.io/os": "linux"}


@pytest.mark.parametrize("part", ["controller", "scheduler", "dashboard"])
def test_an_affinity_takes_the_place_of_the_default(part: str) -> None:
    spec = workloads(f"{part}.affinity={{podAffinity: {{}}}}")[f"lamina-{part}"]
    assert spec["template"]["spec"]["affinity"] == {"podAffinity": {}}


def test_a_component_may_have_no_priority_class() -> None:
    assert "priorityClassName" not in workloads("controller.priorityClassName=''")[CONTROLLER]["template"]["spec"]


def test_in_the_network_of_nodes_a_replica_leaves_its_ports_before_the_next_comes() -> None:
    spec = workloads("controller.hostNetwork=true")[CONTROLLER]
    pod = spec["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    own_name = {"name": "LAMINA_IDENTITY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert own_name in pod["containers"][0]["env"], "the leader's label goes to the pod of this name"
    plain = workloads()[CONTROLLER]
    assert not {"hostNetwork", "dnsPolicy"} & plain["template"]["spec"].keys()
    assert plain["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize("policy", ["Default", "ClusterFirst"])
def test_the_dns_policy_can_be_chosen(policy: str) -> None:
    for network in ("true", "false"):
        spec = workloads(f"controller.hostNetwork={network}", f"controller.dnsPolicy={policy}")[CONTROLLER]
        assert spec["template"]["spec"]["dnsPolicy"] == policy


def test_ports_of_pods_change_with_what_leads_to_them() -> None:
    chosen_ports = [f"controller.ports.{name}={port}" for name, port in PORTS.items()]
    rendered = made("controller.extenderHttp=true", *chosen_ports)
    by_name = {(each["kind"], each["metadata"]["name"]): each["spec"] for each in rendered if "spec" in each}
    containers = by_name["Deployment", CONTROLLER]["template"]["spec"]["containers"]
    listening = {int(each.rpartition(":")[2]) for one in containers for each in one["args"] if "bind=" in each}
    named = {each["name"]: each["containerPort"] for one in containers for each in one["ports"]}
    policy = by_name["NetworkPolicy", CONTROLLER]["ingress"]
    admitted = {each["port"] for rule in policy for each in rule["ports"]}
    assert listening == set(named.values()) == admitted == set(PORTS.values())
    for service in (CONTROLLER, "lamina-admission", "lamina-controller-metrics"):
        ports = by_name["Service", service]["ports"]
        assert {each["targetPort"] for each in ports} <= named.keys()
        assert not {each["port"] for each in ports} & set(PORTS.values())
