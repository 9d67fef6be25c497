"""NVIDIA's operator on nodes that Lamina serves: its plugin where it should not be, and its named configurations."""

import json

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.installed.nvidias_operator import NAMESPACE as THEIRS
from tests.cluster.installed.nvidias_operator import apply, plugin
from tests.cluster.installed.queries import NAMESPACE, SEEN, SHARE, listed, parts, reported, rolled_out, serves
from tests.cluster.queries import allocatable, delete_pods, pod, running, sh
from tests.waiting import wait_until

STRAY = "nvidia-device-plugin"
CONFIGURATION = "nvidia.com/device-plugin.config"
TWO = "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}}"


def test_another_plugin_on_the_node_is_reported_and_replaced(cluster: RealCluster, both: Installation) -> None:
    """Kubelet takes the plugin that registered last. Agents see that it follows them no more, or counts what another
    one reported it, and register again."""
    apply(cluster, plugin(both.image, {"gpu": "on"}, STRAY))
    try:
        wait_until(
            lambda: registered(cluster),
            lambda: cluster.kubectl("describe", "pods", "-n", THEIRS, "-l", f"app={STRAY}"),
        )
        found = reported(both, "other device plugins")
        assert "failed" in found and f"{THEIRS}/{STRAY}-" in found and "on node1" in found
        assert "kubectl label node node1 nvidia.com/gpu.deploy.device-plugin=false" in found
    finally:
        cluster.kubectl("delete", "daemonset", STRAY, "-n", THEIRS)
    wait_until(lambda: not listed(cluster, "pods", "-n", THEIRS, "-l", f"app={STRAY}"), lambda: "their plugin stays")
    assert "failed" not in reported(both, "other device plugins")
    wait_until(lambda: offers(cluster, "node1"), lambda: cluster.kubectl("describe", "node", "node1"))
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node1"))
    running(cluster, "share")
    assert SEEN in sh(cluster, "share", "nvidia-smi")


def registered(cluster: RealCluster) -> bool:
    try:
        return "registered" in cluster.kubectl("logs", "-n", THEIRS, "-l", f"app={STRAY}")
    except Unavailable:  # its container is not there yet
        return False


def offers(cluster: RealCluster, node: str) -> bool:
    """Whether kubelet knows our tickets after everything that others reported, as the agent's log says."""
    (agent,) = (each for each in parts(cluster, "agent") if each["spec"]["nodeName"] == node)
    log = cluster.kubectl("logs", "-n", NAMESPACE, agent["metadata"]["name"])
    again = log.rpartition("Registering nvidia.com/gpu again")[2]
    return again != log and "Reporting nvidia.com/gpu to kubelet: devices: 20, healthy: 20" in again


def test_a_configuration_that_its_policy_names_holds_once_agents_may_read_it(
    cluster: RealCluster, both: Installation
) -> None:
    """Another value reaches all agents, one node after the other; pods with GPUs notice nothing."""
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE, node="node1"))
    running(cluster, "share")
    meta = {"name": "plugin-configs", "namespace": THEIRS}
    apply(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"two": TWO}})
    policy(cluster, meta["name"])
    cluster.kubectl("label", "node", "node2", f"{CONFIGURATION}=two")
    try:
        wait_until(
            lambda: any("may not read ConfigMap" in output for output in refusals(cluster)),
            lambda: str(refusals(cluster)),
        )
        both.shell(
            both.command("lamina install --set image").replace(" | ", f" --set agent.nvidiaNamespace={THEIRS} | ")
        )
        rolled_out(cluster, "daemonset/lamina-agent")
        wait_until(lambda: allocatable(cluster, "node2") == 4, lambda: cluster.kubectl("describe", "node", "node2"))
        cluster.kubectl("apply", "-f", "-", stdin=pod("replica", limits={"nvidia.com/gpu": 1}, node="node2"))
        running(cluster, "replica")
        assert "0MiB /  32768MiB" in sh(cluster, "replica", "nvidia-smi")
        assert SEEN in sh(cluster, "share", "nvidia-smi")
    finally:
        delete_pods(cluster)
        cluster.kubectl("label", "node", "node2", f"{CONFIGURATION}-")
        policy(cluster, "")
    serves(cluster, "node2")


def policy(cluster: RealCluster, config_map: str) -> None:
    """Have the ClusterPolicy name this ConfigMap, or none."""
    config = {"name": config_map} if config_map else None
    patch = json.dumps({"spec": {"devicePlugin": {"config": config}}})
    cluster.kubectl("patch", "clusterpolicy", "cluster-policy", "--type=merge", "-p", patch)


def refusals(cluster: RealCluster) -> list[str]:
    events = listed(cluster, "events", "-n", "default", "--field-selector", "reason=ConfigurationRefused")
    return [each["message"] for each in events]
