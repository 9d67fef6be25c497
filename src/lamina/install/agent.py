"""The DaemonSet of agents.

An agent runs as root, because it writes to root's directories on the node, but it is not privileged: NVIDIA's runtime
provides the GPUs. An init container is privileged, for the moment in which it mounts a tmpfs on the node for the files
that containers write, because Kubernetes allows only such containers to mount what the node sees (Bidirectional).
CAP_CHOWN is the agent's only capability, by which it gives the files that containers write to a user that no
container has. It sees the processes of the node, because the driver lists processes by host PID: that shows which
container uses how much of a GPU. If it may partition GPUs by MIG or share them by MPS, it has CAP_SYS_ADMIN too, which
the driver requires to make instances and to change compute modes. The MPS service runs the daemons.
"""

from typing import Any

from lamina.agent.containers.cdi import VOLUMES
from lamina.configuration.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.install.names import AGENT, chosen, meta
from lamina.install.pods import (
    IMAGE,
    METRICS_SCHEME,
    MOUNTING,
    PROTECTED_METRICS,
    RESTRICTED,
    monitor,
    port,
    probe,
    service,
    startup_probe,
    template,
)
from lamina.install.terms import Each, Given, Joined, Or, Term, Value, When
from lamina.ports.kubelet.servers import PLUGIN_FOLDER, POD_RESOURCES_SOCKET, REGISTRY_FOLDER

METRICS_PORT = 9394
DRIVER = "/run/lamina-host-driver"
"""Where the agent sees the driver of the node, apart from its own system libraries."""
_NVIDIA = Value("agent.nvidiaNamespace")
_MIG = Given(Value("agent.mig"))
DRA_WANTED = Given(Value("dra.enabled"))
BINDING_WANTED = Given(Value("dra.bindingConditions"))
MPS_WANTED = Given(Value("agent.mps"))
_MIG_OR_MPS = Given(Or(Value("agent.mig"), Value("agent.mps")))
FILES_BOUNDED = Given(Value("agent.filesMiB"))
_NODES = Value("agent.nodeSelectorTerms")
_SELECTOR = Value("agent.nodeSelector")
_TOLERATIONS = Value("agent.tolerations")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CGROUPS = "/sys/fs/cgroup"


def agent() -> list[Any]:
    """All objects of the agents except service accounts and network policies."""
    return [
        service(f"{AGENT}-metrics", AGENT, {"metrics": (METRICS_PORT, "metrics")}, headless=True),
        monitor(f"{AGENT}-metrics", AGENT),
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta(AGENT, AGENT),
            "spec": {
                "selector": {"matchLabels": chosen(AGENT)},
                "updateStrategy": Value("agent.updateStrategy"),
                "template": template(AGENT, _spec()),
            },
        },
    ]


def _spec() -> dict[str, Any]:
    mounts, volumes = zip(*_directories(), strict=True)
    container = {
        "name": "agent",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": ["agent", f"--metrics-bind=:{METRICS_PORT}", When(PROTECTED_METRICS, "--protect-metrics")],
        "env": _environment(),
        "ports": [port("metrics", METRICS_PORT)],
        "startupProbe": startup_probe("metrics", scheme=METRICS_SCHEME),
        "livenessProbe": probe("/healthz", "metrics", period_s=20, failures=6, scheme=METRICS_SCHEME),
        "readinessProbe": probe("/readyz", "metrics", period_s=5, failures=3, scheme=METRICS_SCHEME),
        "resources": Value("agent.resources"),
        "securityContext": RESTRICTED
        | {
            "runAsUser": 0,
            "allowPrivilegeEscalation": When(_MIG_OR_MPS, True, False),  # Kubernetes requires it with that capability
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", When(_MIG_OR_MPS, "SYS_ADMIN")]},
        },
        "volumeMounts": [*mounts, Each(Value("agent.volumeMounts"))],
    }
    return {
        "priorityClassName": "system-node-critical",
        "hostPID": True,  # NVML lists the processes of other containers only there
        **placement(),
        "initContainers": When(FILES_BOUNDED, [_mounting()]),
        "containers": [container],
        "volumes": [*volumes, Each(Value("agent.volumes"))],
    }


def _mounting() -> dict[str, Any]:
    """The init container that mounts the tmpfs for the files that containers write. It may be there already."""
    state = Value("agent.stateDir")
    return {
        "name": "mount-files",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": ["mount-files"],
        "env": [
            {"name": "LAMINA_STATE_DIR", "value": state},
            {"name": "LAMINA_FILES_MIB", "value": Joined(Value("agent.filesMiB"))},
        ],
        "resources": Value("agent.resources"),
        "securityContext": MOUNTING,
        "volumeMounts": [
            {"name": "state", "mountPath": state, "mountPropagation": "Bidirectional"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def placement() -> dict[str, Any]:
    """Which nodes have an agent, and how a container there sees the GPUs."""
    return {
        "runtimeClassName": When(Given(Value("agent.runtimeClassName")), Value("agent.runtimeClassName")),
        "nodeSelector": When(Given(_SELECTOR), _SELECTOR),
        "affinity": When(Given(_NODES), {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [Each(_NODES)]}}}),
        "tolerations": When(Given(_TOLERATIONS), [Each(_TOLERATIONS)]),
    }


def _environment() -> list[Any]:
    variables: dict[str, Any] = {
        "LAMINA_LOG_LEVEL": Value("agent.logLevel"),
        "LAMINA_KUBELET_DIR": Value("agent.kubeletDir"),
        "LAMINA_CDI_DIR": Value("agent.cdiDir"),
        "LAMINA_STATE_DIR": Value("agent.stateDir"),
        "LAMINA_DRIVER_DIR": Value("agent.driverDir"),
        "LAMINA_DRIVER_MOUNT": DRIVER,
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    for_mig = [{"name": f"NVIDIA_MIG_{what}_DEVICES", "value": "all"} for what in ("CONFIG", "MONITOR")]
    for_claims = {"LAMINA_DRA": "true", "LAMINA_DRA_DRIVER": Value("dra.driverName")}
    return [
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *({"name": name, "value": value} for name, value in variables.items()),
        When(Given(_NVIDIA), {"name": "LAMINA_NVIDIA_NAMESPACE", "value": _NVIDIA}),
        *(When(_MIG, variable) for variable in for_mig),
        *(When(DRA_WANTED, {"name": name, "value": value}) for name, value in for_claims.items()),
        When(BINDING_WANTED, {"name": "LAMINA_DRA_BINDING_CONDITIONS", "value": "true"}),
        When(MPS_WANTED, {"name": "LAMINA_MPS_ROOT", "value": DEFAULT_MPS_ROOT}),
        Each(Value("agent.env")),
    ]


def _directories() -> list[tuple[Any, Any]]:
    """Mounts and volumes. Host directories keep their paths, because CDI specs name them to the runtime."""
    kubelet = Value("agent.kubeletDir")
    pod_resources = POD_RESOURCES_SOCKET.parent
    return [
        _directory("device-plugins", Joined(kubelet, f"/{PLUGIN_FOLDER}")),
        _directory("pod-resources", Joined(kubelet, f"/{pod_resources}")),
        _registry_directory(Joined(kubelet, f"/{REGISTRY_FOLDER}")),
        _directory("cdi", Value("agent.cdiDir"), kind="DirectoryOrCreate"),
        _state_directory(),
        _directory("driver", Value("agent.driverDir"), at=DRIVER, writable=False),
        _directory("cgroups", _CGROUPS, writable=False),
        _mps_directory(),
        all_gpus(),
        ({"name": "tmp", "mountPath": "/tmp"}, {"name": "tmp", "emptyDir": {}}),
    ]


def _state_directory() -> tuple[Any, Any]:
    """With the tmpfs that is mounted in it, also if that is mounted again."""
    mount, volume = _directory("state", Value("agent.stateDir"), kind="DirectoryOrCreate")
    return mount | {"mountPropagation": "HostToContainer"}, volume


def _registry_directory(path: Term) -> tuple[Any, Any]:
    """Where kubelet looks for drivers."""
    mount, volume = _directory("plugins-registry", path)
    return When(DRA_WANTED, mount), When(DRA_WANTED, volume)


def _mps_directory() -> tuple[Any, Any]:
    """With the mounts of the MPS service, or the directories under those that are gone could not be removed."""
    mount, volume = _directory("mps", DEFAULT_MPS_ROOT, kind="DirectoryOrCreate")
    return When(MPS_WANTED, mount | {"mountPropagation": "HostToContainer"}), When(MPS_WANTED, volume)


def all_gpus() -> tuple[dict[str, Any], dict[str, Any]]:
    """What NVIDIA's runtime understands as all GPUs where a node lets it ignore the variable."""
    name = "all-gpus"
    mount = {"name": name, "mountPath": f"{VOLUMES}/all", "readOnly": True}
    return mount, {"name": name, "hostPath": {"path": "/dev/null", "type": "CharDevice"}}


def _directory(
    name: str, path: Term | str, *, at: str = "", kind: str = "Directory", writable: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    mount: dict[str, Any] = {"name": name, "mountPath": at or path}
    if not writable:
        mount["readOnly"] = True
    return mount, {"name": name, "hostPath": {"path": path, "type": kind}}
