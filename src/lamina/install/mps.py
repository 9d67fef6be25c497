"""The DaemonSet of the MPS service, which runs the MPS daemons apart from the agent.

A container takes its processes with it when it ends, so whatever replaces these pods ends the programs that use MPS.
Therefore they are only replaced when an administrator deletes them (OnDelete), they have no liveness probe, and no
limit on memory, which would count what MPS servers allocate for their clients.

The container is privileged, because Kubernetes allows only such containers to mount what the node sees (Bidirectional):
a tmpfs for the clients of each GPU. It has no rights on the API server and listens on no port.
"""

from typing import Any

from lamina.configuration.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.install.agent import MPS_WANTED, all_gpus, placement
from lamina.install.names import MPS, chosen, meta
from lamina.install.pods import IMAGE, MOUNTING, template
from lamina.install.terms import Given, Joined, Value, When


def mps() -> list[Any]:
    """The DaemonSet, if agents share GPUs by MPS."""
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": meta(MPS, MPS),
        "spec": {
            "selector": {"matchLabels": chosen(MPS)},
            "updateStrategy": {"type": "OnDelete"},
            "template": template(MPS, _spec()),
        },
    }
    return [When(MPS_WANTED, daemon_set)]


def _spec() -> dict[str, Any]:
    variables: dict[str, Any] = {
        "LAMINA_LOG_LEVEL": Value("agent.logLevel"),
        "LAMINA_MPS_SHM_MIB": Joined(Value("mps.sharedMemoryMiB")),
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    gpus_mount, gpus_volume = all_gpus()
    container = {
        "name": "mps",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": ["mps", When(Given(Value("mps.multiUser")), "--multi-user")],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": Value("mps.resources"),
        "securityContext": MOUNTING,
        "volumeMounts": [
            {"name": "mps", "mountPath": DEFAULT_MPS_ROOT, "mountPropagation": "Bidirectional"},
            gpus_mount,
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        "hostPID": True,
        **placement(),
        "containers": [container],
        "volumes": [
            {"name": "mps", "hostPath": {"path": DEFAULT_MPS_ROOT, "type": "DirectoryOrCreate"}},
            gpus_volume,
            {"name": "tmp", "emptyDir": {}},
        ],
    }
