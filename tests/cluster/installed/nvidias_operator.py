"""NVIDIA's GPU operator as a cluster has it: its namespace, kind and policy, and the pods that matter to Lamina.

Its device plugin is chosen by the label that the operator writes, and really registers with kubelet. The other operands
do nothing here but be there, under their names.
"""

import json
from pathlib import Path
from typing import Any

from lamina.ports.kube import CLUSTER_POLICIES
from lamina_lab.cluster.operator_objects import definition
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.own_images import WORKLOAD
from tests.cluster.installed import nvidias_plugin
from tests.waiting import wait_until

NAMESPACE = "gpu-operator"
DEPLOYED = "nvidia.com/gpu.deploy.device-plugin"
PLUGIN = "nvidia-device-plugin-daemonset"
OTHERS = ("nvidia-container-toolkit-daemonset", "nvidia-dcgm-exporter")


def install(cluster: RealCluster, image: str) -> None:
    """Its plugin, which runs from this image, comes to nodes with the label."""
    head = {"apiVersion": CLUSTER_POLICIES.api_version, "kind": CLUSTER_POLICIES.kind}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition()}
    apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, kind)
    cluster.kubectl("wait", "--for=condition=Established", "crd/clusterpolicies.nvidia.com", "--timeout=30s")
    sleep = {"command": ["sleep", "infinity"], "image": WORKLOAD}
    gpu_nodes = {"nvidia.com/gpu.present": "true"}
    apply(
        cluster,
        head | {"metadata": {"name": "cluster-policy"}, "spec": {"devicePlugin": {"enabled": True}}},
        plugin(image, {DEPLOYED: "true"}),
        *(_daemon_set(name, sleep, gpu_nodes) for name in OTHERS),
    )


def left(cluster: RealCluster) -> None:
    """Wait until no pod of its plugin is there any more, none on its way out either."""
    mine = ("get", "pods", "-n", NAMESPACE, "-l", f"app={PLUGIN}", "-o", "name")
    wait_until(lambda: cluster.kubectl(*mine) == "", lambda: cluster.kubectl("get", "pods", "-n", NAMESPACE))


def plugin(image: str, nodes: dict[str, str], name: str = PLUGIN) -> dict[str, Any]:
    """A DaemonSet of the plugin on nodes with these labels."""
    source = Path(nvidias_plugin.__file__).read_text()
    folder = {"name": "plugins", "mountPath": str(nvidias_plugin.FOLDER)}
    container = {
        "image": image,
        "command": ["python3", "-c", source],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [folder],
    }
    volume = {"name": "plugins", "hostPath": {"path": folder["mountPath"]}}
    return _daemon_set(name, container, nodes, volume)


def _daemon_set(name: str, container: dict[str, Any], nodes: dict[str, str], *volumes: Any) -> dict[str, Any]:
    spec = {
        "nodeSelector": nodes,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "imagePullPolicy": "IfNotPresent", **container}],
        "volumes": list(volumes),
    }
    body = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": body}


def apply(cluster: RealCluster, *objects: dict[str, Any]) -> None:
    """Apply these in one go."""
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def uninstall(cluster: RealCluster) -> None:
    """Take everything of it away."""
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false", "--ignore-not-found")
    cluster.kubectl("delete", "crd", "clusterpolicies.nvidia.com", "--ignore-not-found")
