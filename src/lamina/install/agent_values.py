"""The values of agents and of what runs next to them on nodes with GPUs: the MPS service and the driver of claims."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lamina.core.nodes import KEPT_OUT
from lamina.dra.names import DRIVER
from lamina.install.value_types import (
    Component,
    Empty,
    Folder,
    LogLevel,
    Name,
    Object,
    Objects,
    OwnFolder,
    PriorityClass,
    Resources,
    Switch,
    Text,
    asks,
)

ARCHITECTURES = ("amd64", "arm64")
"""Of nodes, which the image can be built for."""
GPU_NODES = (
    ("nvidia.com/gpu.present", "true"),
    ("feature.node.kubernetes.io/pci-10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0302_10de.present", "true"),
    ("feature.node.kubernetes.io/pci-0300_10de.present", "true"),
    ("gpu", "on"),
)
"""Labels of nodes with NVIDIA GPUs: those of NVIDIA's operator, of node feature discovery, and the one from HAMi's
guides."""


def _gpu_nodes() -> tuple[dict[str, Any], ...]:
    kept_out = [{"key": key, "operator": "NotIn", "values": [*values]} for key, values in KEPT_OUT]
    built = {"key": "kubernetes.io/arch", "operator": "In", "values": [*ARCHITECTURES]}
    return tuple(
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}, *kept_out, built]}
        for key, value in GPU_NODES
    )


class NodePool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes whose agents have other directories. An empty text means the directory of the other agents."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$",
            description="a name of lower-case letters, digits, dots and -, such as arm64",
        ),
    ]
    driverDir: Folder | Empty = ""
    kubeletDir: Folder | Empty = ""
    cdiDir: Folder | Empty = ""


class Agent(Component, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The agent, which runs on each node with GPUs."""

    nodeSelectorTerms: Annotated[
        Objects,
        Meta(title="Agents run on nodes that match one of these terms. Empty means every node"),
    ] = msgspec.field(default_factory=_gpu_nodes)
    tolerations: Annotated[Objects, Meta(title="Tolerations of the pods")] = ({"operator": "Exists"},)
    priorityClassName: PriorityClass = "system-node-critical"
    driverDir: Annotated[Folder, Meta(title="Directory of the driver's libraries on the node")] = (
        "/usr/lib/x86_64-linux-gnu"
    )
    kubeletDir: Annotated[Folder, Meta(title="Directory of kubelet on the node")] = "/var/lib/kubelet"
    cdiDir: Annotated[Folder, Meta(title="Directory in which the container runtime reads CDI specs on the node")] = (
        "/var/run/cdi"
    )
    stateDir: Annotated[
        OwnFolder, Meta(title="Directory of the agent on the node. The file system must not be mounted noexec")
    ] = "/var/lib/lamina"
    filesMiB: Annotated[
        int,
        Meta(
            ge=0,
            le=65536,
            description="a whole number from 0 to 65536",
            title="MiB of the tmpfs for the files that containers write, which a privileged init container mounts on "
            "the node. They count as memory of the agent and of these containers. 0: they are on the disk of "
            "`agent.stateDir`, which containers can then fill",
        ),
    ] = 64
    poolLabel: Annotated[
        Text, Meta(title="Label of nodes whose value is the name of their pool, such as kubernetes.io/arch")
    ] = "lamina.dev/pool"
    pools: Annotated[
        tuple[NodePool, ...],
        Meta(
            description="a list of pools, each with a `name`, and `driverDir`, `kubeletDir` and `cdiDir` where they "
            "differ",
            title="Pools of nodes with other directories, each with its own DaemonSet. Nodes of no pool have those "
            "above",
        ),
    ] = ()
    runtimeClassName: Annotated[
        Name, Meta(title="Runtime class of NVIDIA's runtime, if that is not the default runtime")
    ] = ""
    nvidiaNamespace: Annotated[
        Name, Meta(title="Namespace of NVIDIA's operator, so that agents may read its named configurations")
    ] = ""
    mig: Annotated[Switch, Meta(title="Let agents partition GPUs by MIG. They get CAP_SYS_ADMIN for it")] = False
    mps: Annotated[
        Switch,
        Meta(
            title="Let agents share GPUs by NVIDIA's MPS. They get CAP_SYS_ADMIN for it, and a privileged MPS service "
            "runs next to each of them"
        ),
    ] = False
    updateStrategy: Annotated[
        Object,
        Meta(title="Update strategy. With `{type: OnDelete}`, agents are replaced when you delete them"),
    ] = msgspec.field(default_factory=lambda: {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
    logLevel: Annotated[LogLevel, Meta(title="Log level")] = "INFO"
    env: Annotated[Objects, Meta(title="Additional environment variables")] = ()
    volumes: Annotated[Objects, Meta(title="Additional volumes")] = ()
    volumeMounts: Annotated[Objects, Meta(title="Mounts of the additional volumes")] = ()
    resources: Resources = msgspec.field(default_factory=lambda: asks("50m", "128Mi", "512Mi"))


class MpsValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The MPS service, which runs next to each agent if `agent.mps` is true."""

    sharedMemoryMiB: Annotated[
        int,
        Meta(
            ge=1,
            le=524288,
            description="a whole number from 1 to 524288",
            title="MiB that the MPS clients of one GPU share as /dev/shm. They count as memory of the node",
        ),
    ] = 1024
    multiUser: Annotated[
        Switch,
        Meta(
            title="Serve MPS clients of all users at the same time. A fault of one may then end those of other users. "
            "Otherwise clients of another user wait until the others have ended"
        ),
    ] = False
    resources: Annotated[
        Object, Meta(title="Resource requests of a pod. A limit on memory would end programs that use MPS")
    ] = msgspec.field(default_factory=lambda: {"requests": {"cpu": "50m", "memory": "128Mi"}})


class DraValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ResourceClaims, which agents serve as a driver for Dynamic Resource Allocation."""

    enabled: Annotated[
        Switch,
        Meta(
            title="Let agents serve ResourceClaims. Needs Kubernetes 1.34, and 1.36 to share GPUs. No other driver of "
            "that name may run on the nodes of agents"
        ),
    ] = False
    driverName: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
            description="a name of lower-case letters, digits, dots and -, such as gpu.nvidia.com",
            title="Name of the driver. With the default, claims for NVIDIA's driver work unchanged",
        ),
    ] = DRIVER
    bindingConditions: Annotated[
        Switch,
        Meta(
            title="Prepare claims before their pods are bound, so that the scheduler tries another node if that fails. "
            "Needs Kubernetes 1.36. Agents then read all ResourceClaims"
        ),
    ] = False
