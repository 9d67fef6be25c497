"""A DaemonSet that removes from nodes what agents left there, made from the agents' own.

It runs where agents ran, with their image and as their user, and is ready on a node when nothing is left. The agent's
folder itself can only be removed from above, so its parent is mounted. Where agents shared GPUs by MPS it sees the
driver and has their capability, without which nobody can give a GPU's compute mode back.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from lamina.install.agent import REQUIRED
from lamina.install.names import NAMESPACE, chosen, labels
from lamina.ports.kube import Object

CLEANER = "lamina-cleaner"
_PARENT = PurePosixPath("/run/lamina-parent")
_VOLUMES = ("device-plugins", "cdi", "mps")


def cleaner(agents: Object, *, also: Iterable[str] = ()) -> Object:
    """The DaemonSet, for the agents' one; `also` are nodes that had an agent and are kept out by now."""
    template = agents["spec"]["template"]
    spec: Mapping[str, Any] = template["spec"]
    (agent,) = (each for each in spec["containers"] if each["name"] == "agent")
    environment = {each["name"]: each.get("value", "") for each in agent["env"]}
    state = PurePosixPath(environment["LAMINA_STATE_DIR"])
    folders = [
        f"--kubelet-dir={environment['LAMINA_KUBELET_DIR']}",
        f"--cdi-dir={environment['LAMINA_CDI_DIR']}",
        f"--state-dir={_PARENT / state.name}",
    ]
    by_mps = "LAMINA_MPS_ROOT" in environment
    security = agent["securityContext"]
    container = {
        "name": "cleaner",
        "image": agent["image"],
        "imagePullPolicy": agent.get("imagePullPolicy", "IfNotPresent"),
        "args": ["clean-node", "--stay", *folders],
        "readinessProbe": {
            "exec": {"command": ["lamina", "clean-node", "--check", *folders]},
            "periodSeconds": 5,
            "timeoutSeconds": 15,
        },
        "resources": agent.get("resources", {}),
        "env": [each for each in agent["env"] if by_mps and each["name"].startswith("NVIDIA_")],
        "securityContext": security if by_mps else {**security, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            *(mount for mount in agent["volumeMounts"] if mount["name"] in _VOLUMES),
            {"name": "parent", "mountPath": str(_PARENT)},
        ],
    }
    kept = ["imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"]
    kept += ["runtimeClassName"] if by_mps else []
    pod = {
        **{key: spec[key] for key in kept if key in spec},
        **({"affinity": _affinity(spec["affinity"], also)} if "affinity" in spec else {}),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [
            *(volume for volume in spec["volumes"] if volume["name"] in _VOLUMES),
            {"name": "parent", "hostPath": {"path": str(state.parent), "type": "Directory"}},
        ],
    }
    return {
        "metadata": {"name": CLEANER, "namespace": NAMESPACE, "labels": labels(CLEANER)},
        "spec": {
            "selector": {"matchLabels": chosen(CLEANER)},
            "template": {"metadata": {"labels": chosen(CLEANER)}, "spec": pod},
        },
    }


def _affinity(agents: Mapping[str, Any], also: Iterable[str]) -> dict[str, Any]:
    """The agents' own, and these nodes by their names."""
    required = agents["nodeAffinity"][REQUIRED]
    named = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in also]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*required["nodeSelectorTerms"], *named]}}}
