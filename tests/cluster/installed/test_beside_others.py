"""What is not ours: a node that NVIDIA's operator serves, pods of other schedulers, leftovers of other systems."""

import json

import pytest

from tests.cluster.asking import delete_pods, got, pod, running, until, why_pending
from tests.cluster.installed import nvidias_plugin
from tests.cluster.installed.asking import SHARE, amount, parts, serves, told, waiting
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage

IGNORED = {"lamina.dev/webhook": "ignore"}
KEPT_OUT = "nodes with GPUs that are kept out: node2"
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


def test_a_node_of_others_stays_as_it_was(stage: Stage, lamina: Installation) -> None:
    """Runs first in this folder, before node2 becomes ours."""
    assert [each["spec"]["nodeName"] for each in parts(stage, "agent")] == ["node1"]
    until(lambda: amount(stage, "node2") == nvidias_plugin.COUNT, lambda: "their plugin does not serve node2")
    node = json.loads(stage.kubectl("get", "node", "node2", "-o", "json"))
    about = [*node["metadata"]["labels"], *node["metadata"]["annotations"], *node["status"]["capacity"]]
    assert [name for name in about if "lamina" in name or "hami" in name or "vgpu" in name] == []
    assert not (stage.nodes[1].folder / "disk/lib/lamina").exists()
    assert KEPT_OUT in told(lamina, "nodes of others")
    assert "none" in told(lamina, "other device plugins")


def test_shares_are_not_placed_on_a_node_of_others_whose_pods_run_as_before(stage: Stage, lamina: Installation) -> None:
    """Their pods pass by Lamina when they say so, and do not count when Lamina is taken out."""
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    theirs = json.loads(pod("theirs", limits={"nvidia.com/gpu": 1}, node="node2"))
    theirs["metadata"]["labels"] = IGNORED
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(theirs))
    running(stage, "theirs")
    assert "theirs-GPU" in stage.kubectl("exec", "theirs", "--", "printenv", "NVIDIA_VISIBLE_DEVICES")
    until(lambda: why_pending(stage, "share") != "", lambda: "nobody has looked at the pod")
    assert "nodeName" not in got(stage, "share")["spec"]
    with pytest.raises(Unavailable, match="1 pod uses GPUs: default/ours"):
        stage.kubectl("apply", "-f", "-", stdin=pod("ours", limits=SHARE, node="node1"))
        running(stage, "ours")
        lamina.documented("lamina reset")


def test_it_becomes_ours_when_the_operators_plugin_leaves(stage: Stage, both: Installation) -> None:
    assert sorted(each["spec"]["nodeName"] for each in parts(stage, "agent")) == ["node1", "node2"]
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    running(stage, "share")
    said = both.documented("lamina doctor")
    assert "failed" not in said and "warning" not in said
    assert "2 nodes have published what they have" in said


def test_a_node_that_is_taken_from_lamina_is_given_nothing_more(stage: Stage, both: Installation) -> None:
    """What runs there goes on; the agent takes its marks back before it leaves."""
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    running(stage, "share")
    stage.kubectl("label", "node", "node2", "lamina.dev/agent=false")
    try:
        stage.kubectl("apply", "-f", "-", stdin=pod("late", limits=SHARE, node="node2"))
        until(lambda: len(parts(stage, "agent")) == 1, lambda: "the agent stays")
        until(lambda: why_pending(stage, "late") != "", lambda: "nobody has looked at the pod")
        assert "nodeName" not in got(stage, "late")["spec"]
        assert KEPT_OUT in told(both, "nodes of others")
        node = json.loads(stage.kubectl("get", "node", "node2", "-o", "json"))["metadata"]
        assert [name for name in node["annotations"] if "register" in name] == []
        assert [name for name in node["labels"] if name in ("nvidia.com/gpu.count", "nvidia.com/gpu.memory")] == []
        running(stage, "share")
    finally:
        stage.kubectl("label", "node", "node2", "lamina.dev/agent-")
    serves(stage, "node2")
    running(stage, "late")


def test_pods_of_other_schedulers_stay_as_they_were(stage: Stage, lamina: Installation) -> None:
    """A scheduler that gives them a GPU all the same finds that no container starts: nobody wrote a grant."""
    stage.kubectl("apply", "-f", "-", stdin=pod("plain"))
    stage.kubectl("apply", "-f", "-", stdin=pod("others", limits=SHARE, schedulerName="another"))
    running(stage, "plain")
    plain, others = got(stage, "plain"), got(stage, "others")
    assert plain["spec"]["schedulerName"] == "default-scheduler"
    assert "env" not in plain["spec"]["containers"][0]
    assert others["spec"]["schedulerName"] == "another"
    assert "nodeName" not in others["spec"]
    bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "others"}, "target": {"name": "node1"}}
    stage.kubectl(
        "create", "--raw", "/api/v1/namespaces/default/pods/others/binding", "-f", "-", stdin=json.dumps(bound)
    )
    until(lambda: "no grant" in waiting(stage, "others"), lambda: stage.kubectl("describe", "pod", "others"))


def test_leftovers_of_another_system_are_told_and_do_no_harm(stage: Stage, lamina: Installation) -> None:
    """A webhook whose service is gone, first one that lets pods pass, then one that does not."""
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(HAMI))
    try:
        assert "hami-webhook (vgpu.hami.io)" in told(lamina, "other webhooks")
        stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
        running(stage, "share")
        strict = json.loads(json.dumps(HAMI).replace("Ignore", "Fail"))
        stage.kubectl("apply", "-f", "-", stdin=json.dumps(strict))
        until(
            lambda: "vgpu.hami.io is not Lamina's" in told(lamina, "webhook"),
            lambda: lamina.shell("lamina doctor || true"),
        )
    finally:
        stage.kubectl("delete", "mutatingwebhookconfiguration", "hami-webhook")
    delete_pods(stage)
    until(lambda: "failed" not in told(lamina, "webhook"), lambda: lamina.shell("lamina doctor || true"))
