"""What is not ours: a node that NVIDIA's operator serves, pods of other schedulers, leftovers of other systems."""

import json

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed import nvidias_plugin
from tests.cluster.installed.queries import SHARE, parts, reported, serves, waiting
from tests.cluster.queries import allocatable, delete_pods, got, pod, running, why_pending
from tests.waiting import wait_until

IGNORED = {"lamina.dev/webhook": "ignore"}
KEPT_OUT = "nodes with GPUs that Lamina does not serve: node2"
HAMI = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "hami-webhook"},
    "webhooks": [
        {
            "name": "vgpu.hami.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "kube-system", "name": "hami-scheduler", "path": "/webhook"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
        }
    ],
}


def test_a_node_of_others_stays_as_it_was(cluster: RealCluster, lamina: Installation) -> None:
    """Runs first in this folder, before node2 becomes ours."""
    assert [each["spec"]["nodeName"] for each in parts(cluster, "agent")] == ["node1"]
    wait_until(
        lambda: allocatable(cluster, "node2") == nvidias_plugin.COUNT, lambda: "their plugin does not serve node2"
    )
    node = json.loads(cluster.kubectl("get", "node", "node2", "-o", "json"))
    about = [*node["metadata"]["labels"], *node["metadata"]["annotations"], *node["status"]["capacity"]]
    assert [name for name in about if "lamina" in name or "hami" in name or "vgpu" in name] == []
    assert not (cluster.nodes[1].folder / "disk/lib/lamina").exists()
    assert KEPT_OUT in reported(lamina, "excluded nodes")
    assert "none" in reported(lamina, "other device plugins")


def test_shares_are_not_placed_on_a_node_of_others_whose_pods_run_as_before(
    cluster: RealCluster, lamina: Installation
) -> None:
    """Their pods pass by Lamina when they say so, and do not count when Lamina is taken out."""
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    theirs = json.loads(pod("theirs", limits={"nvidia.com/gpu": 1}, node="node2"))
    theirs["metadata"]["labels"] = IGNORED
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(theirs))
    running(cluster, "theirs")
    assert "theirs-GPU" in cluster.kubectl("exec", "theirs", "--", "printenv", "NVIDIA_VISIBLE_DEVICES")
    wait_until(lambda: why_pending(cluster, "share") != "", lambda: "no one has looked at the pod")
    assert "nodeName" not in got(cluster, "share")["spec"]
    with pytest.raises(Unavailable, match="1 pod uses GPUs: default/ours"):
        cluster.kubectl("apply", "-f", "-", stdin=pod("ours", limits=SHARE, node="node1"))
        running(cluster, "ours")
        lamina.documented("lamina reset")


def test_it_becomes_ours_when_the_operators_plugin_leaves(cluster: RealCluster, both: Installation) -> None:
    assert sorted(each["spec"]["nodeName"] for each in parts(cluster, "agent")) == ["node1", "node2"]
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    running(cluster, "share")
    output = both.shell(both.command("lamina doctor") + " --all")
    assert "0 failed, 0 warning" in output
    assert "2 nodes have published an inventory" in output


def test_a_node_that_is_taken_from_lamina_is_given_nothing_more(cluster: RealCluster, both: Installation) -> None:
    """What runs there goes on; the agent takes its marks back before it leaves."""
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    running(cluster, "share")
    cluster.kubectl("label", "node", "node2", "lamina.dev/agent=false")
    try:
        cluster.kubectl("apply", "-f", "-", stdin=pod("late", limits=SHARE, node="node2"))
        wait_until(lambda: len(parts(cluster, "agent")) == 1, lambda: "the agent stays")
        wait_until(lambda: why_pending(cluster, "late") != "", lambda: "no one has looked at the pod")
        assert "nodeName" not in got(cluster, "late")["spec"]
        assert KEPT_OUT in reported(both, "excluded nodes")
        node = json.loads(cluster.kubectl("get", "node", "node2", "-o", "json"))["metadata"]
        assert [name for name in node["annotations"] if "register" in name] == []
        assert [name for name in node["labels"] if name in ("nvidia.com/gpu.count", "nvidia.com/gpu.memory")] == []
        running(cluster, "share")
    finally:
        cluster.kubectl("label", "node", "node2", "lamina.dev/agent-")
    serves(cluster, "node2")
    running(cluster, "late")


def test_pods_of_other_schedulers_stay_as_they_were(cluster: RealCluster, lamina: Installation) -> None:
    """A scheduler that gives them a GPU anyway finds that no container starts, because no grant exists."""
    cluster.kubectl("apply", "-f", "-", stdin=pod("plain"))
    cluster.kubectl("apply", "-f", "-", stdin=pod("others", limits=SHARE, schedulerName="another"))
    running(cluster, "plain")
    plain, others = got(cluster, "plain"), got(cluster, "others")
    assert plain["spec"]["schedulerName"] == "default-scheduler"
    assert "env" not in plain["spec"]["containers"][0]
    assert others["spec"]["schedulerName"] == "another"
    assert "nodeName" not in others["spec"]
    bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "others"}, "target": {"name": "node1"}}
    cluster.kubectl(
        "create", "--raw", "/api/v1/namespaces/default/pods/others/binding", "-f", "-", stdin=json.dumps(bound)
    )
    wait_until(lambda: "no grant" in waiting(cluster, "others"), lambda: cluster.kubectl("describe", "pod", "others"))


def test_leftovers_of_another_system_are_reported_and_harmless(cluster: RealCluster, lamina: Installation) -> None:
    """A webhook whose service is gone, first one that lets pods pass, then one that does not."""
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(HAMI))
    try:
        assert "hami-webhook (vgpu.hami.io)" in reported(lamina, "other webhooks")
        cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
        running(cluster, "share")
        strict = json.loads(json.dumps(HAMI).replace("Ignore", "Fail"))
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(strict))
        wait_until(
            lambda: "vgpu.hami.io is not Lamina's" in reported(lamina, "webhook"),
            lambda: lamina.shell("lamina doctor --all || true"),
        )
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "hami-webhook")
    delete_pods(cluster)
    wait_until(lambda: "failed" not in reported(lamina, "webhook"), lambda: lamina.shell("lamina doctor --all || true"))
