"""What is not ours: a node that NVIDIA's operator serves, and pods of other schedulers."""

import json

from tests.cluster.asking import got, pod, running, until
from tests.cluster.installed.asking import SHARE, parts
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage


def test_a_node_of_others_gets_nothing(stage: Stage, lamina: Installation) -> None:
    """Runs first in this folder, before node2 becomes ours."""
    assert [each["spec"]["nodeName"] for each in parts(stage, "agent")] == ["node1"]
    node = json.loads(stage.kubectl("get", "node", "node2", "-o", "json"))
    about = [*node["metadata"]["labels"], *node["metadata"]["annotations"], *node["status"]["capacity"]]
    assert [name for name in about if "lamina" in name or "hami" in name or "vgpu" in name] == []
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
    disk = stage.nodes[1].folder / "disk/lib"
    assert not (disk / "lamina").exists()
    told = lamina.documented("lamina doctor")
    assert "nodes with GPUs that are kept out: node2" in told


def test_it_becomes_ours_when_the_operators_plugin_leaves(stage: Stage, both: Installation) -> None:
    assert sorted(each["spec"]["nodeName"] for each in parts(stage, "agent")) == ["node1", "node2"]
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node2"))
    running(stage, "share")
    told = both.documented("lamina doctor")
    assert "failed" not in told and "warning" not in told
    assert "2 nodes have published what they have" in told


def test_pods_of_other_schedulers_stay_as_they_were(stage: Stage, lamina: Installation) -> None:
    stage.kubectl("apply", "-f", "-", stdin=pod("plain"))
    stage.kubectl("apply", "-f", "-", stdin=pod("others", limits=SHARE, schedulerName="another"))
    running(stage, "plain")
    plain, others = got(stage, "plain"), got(stage, "others")
    assert plain["spec"]["schedulerName"] == "default-scheduler"
    assert "env" not in plain["spec"]["containers"][0]
    assert others["spec"]["schedulerName"] == "another"
    assert "nodeName" not in others["spec"]
    stage.kubectl("apply", "-f", "-", stdin=pod("ours", limits=SHARE))
    until(lambda: "nodeName" in got(stage, "ours")["spec"], lambda: stage.kubectl("describe", "pod", "ours"))
    assert got(stage, "ours")["spec"]["schedulerName"] != "default-scheduler"
