"""NVIDIA's operator on nodes that Lamina serves: its plugin where it should not be, and its named configurations."""

import json

from tests.cluster.asking import delete_pods, pod, running, sh, until
from tests.cluster.installed.asking import NAMESPACE, SEEN, SHARE, amount, listed, parts, rolled_out, serves, told
from tests.cluster.installed.nvidias_operator import NAMESPACE as THEIRS
from tests.cluster.installed.nvidias_operator import apply, plugin
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage

STRAY = "nvidia-device-plugin"
CONFIGURATION = "nvidia.com/device-plugin.config"
TWO = "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}}"


def test_a_plugin_on_our_node_is_told_and_does_not_stay_in_charge(stage: Stage, both: Installation) -> None:
    """Kubelet takes the plugin that registered last. Agents see that it follows them no more, or counts what another
    one told it, and register again."""
    apply(stage, plugin(both.image, {"gpu": "on"}, STRAY))
    try:
        until(
            lambda: registered(stage),
            lambda: stage.kubectl("describe", "pods", "-n", THEIRS, "-l", f"app={STRAY}"),
        )
        found = told(both, "other device plugins")
        assert "failed" in found and f"{THEIRS}/{STRAY}-" in found and "on node1" in found
        assert "kubectl label node node1 nvidia.com/gpu.deploy.device-plugin=false" in found
    finally:
        stage.kubectl("delete", "daemonset", STRAY, "-n", THEIRS)
    until(lambda: not listed(stage, "pods", "-n", THEIRS, "-l", f"app={STRAY}"), lambda: "their plugin stays")
    assert "failed" not in told(both, "other device plugins")
    until(lambda: offers(stage, "node1"), lambda: stage.kubectl("describe", "node", "node1"))
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node1"))
    running(stage, "share")
    assert SEEN in sh(stage, "share", "nvidia-smi")


def registered(stage: Stage) -> bool:
    try:
        return "registered" in stage.kubectl("logs", "-n", THEIRS, "-l", f"app={STRAY}")
    except Unavailable:  # its container is not there yet
        return False


def offers(stage: Stage, node: str) -> bool:
    """Whether kubelet has been told of our tickets after everything that others told it, as the agent's log says."""
    (agent,) = (each for each in parts(stage, "agent") if each["spec"]["nodeName"] == node)
    log = stage.kubectl("logs", "-n", NAMESPACE, agent["metadata"]["name"])
    again = log.rpartition("Registering nvidia.com/gpu again")[2]
    return again != log and "Kubelet is told 20 of nvidia.com/gpu, 20 healthy" in again


def test_a_configuration_that_its_policy_names_holds_once_agents_may_read_it(stage: Stage, both: Installation) -> None:
    """Another value reaches all agents, one node after the other; pods with GPUs notice nothing."""
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node1"))
    running(stage, "share")
    meta = {"name": "plugin-configs", "namespace": THEIRS}
    apply(stage, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"two": TWO}})
    policy(stage, meta["name"])
    stage.kubectl("label", "node", "node2", f"{CONFIGURATION}=two")
    try:
        until(lambda: any("may not read ConfigMap" in said for said in refusals(stage)), lambda: str(refusals(stage)))
        both.shell(
            both.command("lamina install --set image").replace(" | ", f" --set agent.nvidiaNamespace={THEIRS} | ")
        )
        rolled_out(stage, "daemonset/lamina-agent")
        until(lambda: amount(stage, "node2") == 4, lambda: stage.kubectl("describe", "node", "node2"))
        stage.kubectl("apply", "-f", "-", stdin=pod("replica", limits={"nvidia.com/gpu": 1}, node="node2"))
        running(stage, "replica")
        assert "0MiB / 32768MiB" in sh(stage, "replica", "nvidia-smi")
        assert SEEN in sh(stage, "share", "nvidia-smi")
    finally:
        delete_pods(stage)
        stage.kubectl("label", "node", "node2", f"{CONFIGURATION}-")
        policy(stage, "")
    serves(stage, "node2")


def policy(stage: Stage, config_map: str) -> None:
    """Have the ClusterPolicy name this ConfigMap, or none."""
    config = {"name": config_map} if config_map else None
    patch = json.dumps({"spec": {"devicePlugin": {"config": config}}})
    stage.kubectl("patch", "clusterpolicy", "cluster-policy", "--type=merge", "-p", patch)


def refusals(stage: Stage) -> list[str]:
    events = listed(stage, "events", "-n", "default", "--field-selector", "reason=ConfigurationRefused")
    return [each["message"] for each in events]
