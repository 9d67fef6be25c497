"""Which nodes take a pod, and in which words others are refused."""

from decimal import Decimal
from typing import Any

import pytest

from lamina_lab.kubernetes.node_affinity import allows
from lamina_lab.kubernetes.taints import tolerates, untolerated
from lamina_lab.scheduler.rules.filters import reasons
from lamina_lab.scheduler.rules.node_view import NodeView, views
from lamina_lab.scheduler.rules.pod_requests import requests, requests_any
from lamina_lab.scheduler.rules.reasons import sentence
from lamina_lab.scheduler.rules.scores import best


def container(**requested: str) -> dict[str, Any]:
    return {"resources": {"requests": {name.replace("_", "/"): value for name, value in requested.items()}}}


def pod(*containers: dict[str, Any], name: str = "p", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": spec.pop("labels", {})}
    return {"metadata": meta, "spec": {"containers": list(containers or [container()]), **spec}}


def view(name: str = "n1", *placed: dict[str, Any], ready: str = "True", **spec: Any) -> NodeView:
    labels = {"kubernetes.io/hostname": name, "zone": "a", "gen": "7"}
    node = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "3", "nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    bound = [{**each, "spec": {**each["spec"], "nodeName": name}} for each in placed]
    return views([node], bound, {})[0]


SIDECAR = container(cpu="1") | {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(cpu="1"), container(cpu="500m")]}, "1.5"),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]}, "3"),
        ({"containers": [container(cpu="3")], "initContainers": [container(cpu="1")]}, "3"),
        ({"containers": [container(cpu="1")], "initContainers": [SIDECAR]}, "2"),
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [SIDECAR, container(cpu="4")],
            },
            "5",
        ),
        (
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="4"), SIDECAR],
            },
            "4",
        ),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, "2"),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}]}, "1"),
        ({"containers": [{}]}, "0"),
    ],
)
def test_requests_of_a_pod(spec: dict[str, Any], cpu: str) -> None:
    assert requests({"spec": spec}).get("cpu", Decimal(0)) == Decimal(cpu)


def test_pods_that_request_a_managed_resource() -> None:
    gpu = "nvidia.com/gpu"
    assert requests_any(pod(container(nvidia_com="1"), {"resources": {"limits": {gpu: "1"}}}), [gpu])
    assert requests_any(pod(initContainers=[{"resources": {"requests": {gpu: "1"}}}]), [gpu])
    assert not requests_any(pod(container(cpu="1")), [gpu])


TAINT = {"key": "a", "value": "b", "effect": "NoExecute"}
HALF = pod(container(cpu="2", memory="4Gi"), name="half")


@pytest.mark.parametrize(
    ("wanted", "where", "why"),
    [
        (pod(container(cpu="4", memory="8Gi")), view(), []),
        (pod(container(cpu="4001m")), view(), ["Insufficient cpu"]),
        (pod(container(cpu="3", memory="5Gi")), view("n1", HALF), ["Insufficient cpu", "Insufficient memory"]),
        (pod(container(cpu="2")), view("n1", HALF, {**HALF, "status": {"phase": "Succeeded"}}), []),
        (pod(), view("n1", pod(), pod(), pod()), ["Too many pods"]),
        (pod({"resources": {"requests": {"nvidia.com/gpu": "3"}}}), view(), ["Insufficient nvidia.com/gpu"]),
        (pod({"resources": {"requests": {"example.com/x": "1"}}}), view(), ["Insufficient example.com/x"]),
        (pod({"resources": {"requests": {"ignored/gpumem": "10000"}}}), view(), []),
        (pod(), view(unschedulable=True), ["node(s) were unschedulable"]),
        (pod(), view(ready="False"), ["node(s) were not ready"]),
        (pod(), view(ready="Unknown"), ["node(s) were not ready"]),
        (pod(tolerations=[{"operator": "Exists"}]), view(ready="False", unschedulable=True), []),
        (pod(), view(taints=[{"key": "a", "effect": "NoSchedule"}]), ["node(s) had untolerated taint {a: }"]),
        (pod(), view(taints=[TAINT]), ["node(s) had untolerated taint {a: b}"]),
        (pod(), view(taints=[{"key": "a", "effect": "PreferNoSchedule"}]), []),
        (pod(nodeSelector={"zone": "b"}), view(), ["node(s) didn't match Pod's node affinity/selector"]),
        (pod(nodeSelector={"zone": "a"}), view(), []),
        (pod(nodeName="n2"), view(), ["node(s) didn't match the requested node name"]),
        (
            pod({"ports": [{"hostPort": 80}]}),
            view("n1", pod({"ports": [{"hostPort": 80}]})),
            ["node(s) didn't have free ports for the requested pod ports"],
        ),
        (pod({"ports": [{"hostPort": 80}]}), view("n1", pod({"ports": [{"hostPort": 80, "protocol": "UDP"}]})), []),
    ],
)
def test_why_not_this_node(wanted: dict[str, Any], where: NodeView, why: list[str]) -> None:
    assert reasons(wanted, where, {"ignored/gpumem"}) == why


def repelling(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_that_repel_each_other_in_either_direction() -> None:
    web, shy = pod(labels={"app": "web"}), pod(affinity=repelling(app="web"))
    assert reasons(shy, view("n1", web), ()) == ["node(s) didn't match pod anti-affinity rules"]
    assert reasons(web, view("n1", shy), ()) == ["node(s) didn't satisfy existing pods anti-affinity rules"]
    assert reasons(shy, view("n1", shy), ()) == []


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ({"key": "zone", "operator": "In", "values": ["a", "b"]}, True),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "none", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "gen", "operator": "Gt", "values": ["6"]}, True),
        ({"key": "gen", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "gen", "operator": "Lt", "values": ["8"]}, True),
        ({"key": "zone", "operator": "Gt", "values": ["6"]}, False),
        ({"key": "zone", "operator": "Lt", "values": ["6"]}, False),
        ({"key": "zone", "operator": "Near", "values": ["a"]}, False),
    ],
)
def test_node_affinity_operators(expression: dict[str, Any], holds: bool) -> None:
    node = view().node
    for terms, expected in (
        ([{"matchExpressions": [expression]}], holds),
        ([{"matchExpressions": [expression]}, {"matchFields": [name_in("n1")]}], True),
        ([{"matchExpressions": [expression], "matchFields": [name_in("n2")]}], False),
        ([{}], False),
        ([], False),
    ):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        assert allows({"affinity": {"nodeAffinity": required}}, node) is expected


def name_in(name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "v"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], holds: bool) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert tolerates(toleration, taint) is holds
    assert (untolerated([taint], [toleration]) is None) is holds


def test_reasons_are_counted_and_ordered() -> None:
    why = {"a": ["Insufficient cpu"], "b": ["Insufficient cpu", "Insufficient memory"], "c": ["needs 5 MiB."]}
    expected = "0/3 nodes are available: 1 Insufficient memory, 1 needs 5 MiB, 2 Insufficient cpu."
    assert sentence(3, why) == expected
    assert sentence(0, {}) == "no nodes available to schedule pods"


def test_the_extender_decides_and_the_emptier_node_breaks_ties() -> None:
    full, empty, other = view("a", HALF), view("b"), view("c")
    asked = requests(pod(container(cpu="1")))
    assert best([full, empty, other], asked, {"a": 9.0, "b": 1.0}) == "a"
    assert best([full, empty, other], asked, {}) == "b"
    assert best([other, empty], asked, {}) == "b"
    assert best([full, empty], asked, {"a": 5.0, "b": 5.0}) == "b"
