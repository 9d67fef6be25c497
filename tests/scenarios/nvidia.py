"""What the scenarios of NVIDIA's vocabulary share: the node's configuration as its documents set it, and its effect."""

import json
from typing import Any

from lamina.agent.compat.reconciler import PLENTY
from tests.scenarios.labs import Cluster
from tests.seeds import piped, seed
from tests.waiting import wait_until

NAMESPACE = "nvidia-gpu-operator"
LABEL = "nvidia.com/device-plugin.config"
SHARED = "nvidia.com/gpu.shared"
GPU = "nvidia.com/gpu"


def config_map(name: str) -> str:
    """A ConfigMap of the document about GPU sharing on OpenShift."""
    return next(text for text in piped(seed("002")) if f"name: {name}" in text and "kind: ConfigMap" in text)


def replicas(count: int, *, resource: str = GPU, **flags: object) -> str:
    """A configuration with time-slicing."""
    sharing = {"timeSlicing": {**flags, "resources": [{"name": resource, "replicas": count}]}}
    return json.dumps({"version": "v1", "sharing": sharing})


def publish(lab: Cluster, name: str, configs: dict[str, str]) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    lab.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": configs}))


def use(lab: Cluster, config: dict[str, str]) -> None:
    """Have the ClusterPolicy name a ConfigMap."""
    patch = json.dumps({"spec": {"devicePlugin": {"config": config}}})
    lab.kubectl("patch", "clusterpolicy", "gpu-cluster-policy", "-n", NAMESPACE, "--type", "merge", "-p", patch)


def label(lab: Cluster, value: str) -> None:
    """Name the node's configuration; an empty value removes the label."""
    lab.kubectl("label", "--overwrite", "node", lab.node, f"{LABEL}={value}" if value else f"{LABEL}-")


def allocatable(lab: Cluster) -> dict[str, int]:
    """How many devices of each resource of NVIDIA's the node offers, those of which it offers none left out."""
    status: dict[str, Any] = lab.read(f"/api/v1/nodes/{lab.node}")["status"]
    devices = {name: n for name, n in status["allocatable"].items() if n not in ("0", str(PLENTY))}
    return {name: int(n) for name, n in devices.items() if name.startswith("nvidia.com/")}


def offers(lab: Cluster, expected: dict[str, int]) -> None:
    wait_until(lambda: allocatable(lab) == expected, lambda: f"{allocatable(lab)}, expected {expected}")


def pod(name: str, *command: str, resource: str = GPU, count: int = 1, **more: object) -> str:
    """A pod that counts devices and waits, or runs a command."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": list(command) or ["sleep", "1000"],
        "resources": {"limits": {resource: count, **more}},
    }
    meta = {"name": name, "labels": {"app": "counting"}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
    )


def visible(lab: Cluster, name: str) -> str:
    """What the container may see."""
    return lab.kubectl("exec", name, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES").strip()


def node_events(lab: Cluster, reason: str) -> list[str]:
    items = json.loads(lab.kubectl("get", "events", "-A", "-o", "json"))["items"]
    return [each["message"] for each in items if each["reason"] == reason and each["involvedObject"]["kind"] == "Node"]
