"""DaemonSets: one pod on each node that takes it, placed by the scheduler, replaced in turn."""

from typing import Any

import pytest

from lamina.ports.kube import NODES
from lamina_lab.controllers.daemonset.plan import node_of, plan
from lamina_lab.controllers.framework.kinds import DAEMON_SETS
from lamina_lab.kubernetes import objects
from tests.lab_controllers.cluster import Kubelet, LabInProcess, template
from tests.worlds.clocks import settle


def daemon_set(**pod_spec: Any) -> dict[str, Any]:
    labels = {"app": "agent"}
    body = template(labels)
    body["spec"].update(pod_spec)
    spec = {"selector": {"matchLabels": labels}, "template": body}
    return {"metadata": {"name": "agent", "namespace": "default", "uid": "1"}, "spec": spec}


def node(name: str, **fields: Any) -> dict[str, Any]:
    taints = [{"key": key, "effect": effect} for key, effect in fields.get("taints", {}).items()]
    return {"metadata": {"name": name, "labels": fields.get("labels", {})}, "spec": {"taints": taints}}


def nodes_with_pods(wanted: dict[str, Any], nodes: list[dict[str, Any]]) -> list[str]:
    return [node_of(pod) for pod in plan(wanted, [], nodes, 0).create]


def test_selectors_affinity_and_taints_choose_the_nodes() -> None:
    nodes = [
        node("plain"),
        node("gpu", labels={"gpu": "on"}),
        node("taken", labels={"gpu": "on"}, taints={"dedicated": "NoSchedule"}),
        node("cordoned", labels={"gpu": "on"}, taints={"node.kubernetes.io/unschedulable": "NoSchedule"}),
        node("lost", labels={"gpu": "on"}, taints={"node.kubernetes.io/unreachable": "NoExecute"}),
        node("soft", labels={"gpu": "on"}, taints={"busy": "PreferNoSchedule"}),
    ]
    assert nodes_with_pods(daemon_set(nodeSelector={"gpu": "on"}), nodes) == ["cordoned", "gpu", "lost", "soft"]
    tolerant = daemon_set(nodeSelector={"gpu": "on"}, tolerations=[{"operator": "Exists"}])
    assert "taken" in nodes_with_pods(tolerant, nodes)
    term = {"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert nodes_with_pods(daemon_set(affinity=affinity), nodes) == ["plain"]


def test_a_new_taint_without_execution_leaves_the_pod_where_it_is() -> None:
    wanted = daemon_set()
    (pod,) = plan(wanted, [], [node("a")], 0).create
    pod["metadata"] |= {"name": "agent-x", "uid": "p", "resourceVersion": "1"}
    pod["spec"]["nodeName"] = "a"
    assert plan(wanted, [pod], [node("a", taints={"new": "NoSchedule"})], 0).delete == []
    assert plan(wanted, [pod], [node("a", taints={"new": "NoExecute"})], 0).delete == [pod]


@pytest.mark.parametrize("max_unavailable", [1, 2, "50%"])
async def test_one_pod_per_node_and_a_rolling_update(
    cluster: LabInProcess, kubelet: Kubelet, max_unavailable: int | str
) -> None:
    for name in ("n2", "n3", "n4"):
        await cluster.add_node(name)
    kubelet.bind_to = None
    wanted = daemon_set()
    wanted["metadata"].pop("uid")
    wanted["spec"]["updateStrategy"] = {"rollingUpdate": {"maxUnavailable": max_unavailable}}
    await cluster.create(DAEMON_SETS, wanted)
    await settle(500)
    await place(cluster)
    pods = cluster.pods()
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["n1", "n2", "n3", "n4"]
    status = (await cluster.get(DAEMON_SETS, "agent"))["status"]
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (4, 4)

    allowed = 1 if max_unavailable == 1 else 2
    body = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}
    await cluster.change(DAEMON_SETS, "agent", body)
    for _ in range(8):
        await settle(500)
        assert sum(map(objects.is_ready, cluster.pods())) >= 4 - allowed
        await place(cluster)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"busybox:2"}
    status = (await cluster.get(DAEMON_SETS, "agent"))["status"]
    assert (status["updatedNumberScheduled"], status["numberAvailable"], status["numberUnavailable"]) == (4, 4, 0)


async def place(cluster: LabInProcess) -> None:
    """Bind each pod to the node it was made for, as the scheduler does."""
    for pod in cluster.pods():
        if not pod["spec"].get("nodeName"):
            where = {"namespace": "default", "uid": objects.uid(pod), "node": node_of(pod)}
            await cluster.kube.bind(objects.name(pod), **where)
    await settle(1000)


async def test_nodes_that_come_and_go(cluster: LabInProcess, kubelet: Kubelet) -> None:
    kubelet.bind_to = None
    wanted = daemon_set()
    wanted["metadata"].pop("uid")
    await cluster.create(DAEMON_SETS, wanted)
    await settle(500)
    await place(cluster)
    await cluster.add_node("n2")
    await settle(500)
    await place(cluster)
    assert len(cluster.pods()) == 2
    await cluster.delete(NODES, "n2")
    await settle(1000)
    assert [pod["spec"]["nodeName"] for pod in cluster.pods()] == ["n1"]
    assert (await cluster.get(DAEMON_SETS, "agent"))["status"]["desiredNumberScheduled"] == 1
