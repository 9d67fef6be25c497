"""A DaemonSet that removes what agents left on nodes, derived from the DaemonSet of agents.

It runs where agents ran, with their image and user, and is ready on a node when nothing is left. The directory of the
agent can only be removed from its parent, so the parent is mounted. It is privileged where something is to be unmounted
on the node: the tmpfs of the files that containers wrote, and the clients' shared memory if agents shared GPUs by MPS.
Then it sees the driver too, which it needs to restore the compute mode of GPUs.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from lamina.install.names import AGENT, chosen, labels
from lamina.ports.kube import Object

CLEANER = "lamina-cleaner"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_BOTH = "Bidirectional"
_PARENT = PurePosixPath("/run/lamina-parent")
_VOLUMES = ("device-plugins", "plugins-registry", "cdi", "mps")


def cleaner(agents: Object, *, also: Iterable[str] = ()) -> Object:
    """The DaemonSet of cleaners for a DaemonSet of agents, which may be of a pool of nodes.

    `also` are nodes that had an agent and are now excluded.
    """
    template = agents["spec"]["template"]
    spec: Mapping[str, Any] = template["spec"]
    (agent,) = (container for container in spec["containers"] if container["name"] == "agent")
    environment = {variable["name"]: variable.get("value", "") for variable in agent["env"]}
    state = PurePosixPath(environment["LAMINA_STATE_DIR"])
    directories = [
        f"--kubelet-dir={environment['LAMINA_KUBELET_DIR']}",
        f"--cdi-dir={environment['LAMINA_CDI_DIR']}",
        f"--state-dir={_PARENT / state.name}",
    ]
    with_mps, with_mount = "LAMINA_MPS_ROOT" in environment, bool(spec.get("initContainers"))
    unmounts = with_mps or with_mount
    security = {
        **agent["securityContext"],
        "allowPrivilegeEscalation": unmounts,
        "capabilities": {"drop": ["ALL"]} | ({"add": ["SYS_ADMIN"]} if unmounts else {}),
        **({"privileged": True} if unmounts else {}),
    }
    container = {
        "name": "cleaner",
        "image": agent["image"],
        "imagePullPolicy": agent.get("imagePullPolicy", "IfNotPresent"),
        "args": ["clean-node", "--stay", *directories],
        "readinessProbe": {
            "exec": {"command": ["lamina", "clean-node", "--check", *directories]},
            "periodSeconds": 5,
            "timeoutSeconds": 15,
        },
        "resources": agent.get("resources", {}),
        "env": [variable for variable in agent["env"] if with_mps and variable["name"].startswith("NVIDIA_")],
        "securityContext": security,
        "volumeMounts": [
            *(_mount(mount) for mount in agent["volumeMounts"] if mount["name"] in _VOLUMES),
            {"name": "parent", "mountPath": str(_PARENT)} | ({"mountPropagation": _BOTH} if with_mount else {}),
        ],
    }
    kept = ["serviceAccountName", "imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"]
    kept += ["runtimeClassName"] if with_mps else []
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
    selected = {**agents["spec"]["selector"]["matchLabels"], **chosen(CLEANER)}
    name = agents["metadata"]["name"].replace(AGENT, CLEANER)
    return {
        "metadata": {"name": name, "namespace": agents["metadata"]["namespace"], "labels": labels(CLEANER)},
        "spec": {
            "selector": {"matchLabels": selected},
            "template": {"metadata": {"labels": selected}, "spec": pod},
        },
    }


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    """The agent's mount. What is unmounted in it is unmounted on the node."""
    return {**mount, **({"mountPropagation": _BOTH} if "mountPropagation" in mount else {})}


def _affinity(agents: Mapping[str, Any], also: Iterable[str]) -> dict[str, Any]:
    """The affinity of the agents, plus these nodes by name."""
    required = agents["nodeAffinity"][REQUIRED]
    named = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in also]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*required["nodeSelectorTerms"], *named]}}}
