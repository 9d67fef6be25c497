"""Shares and grants: the record that a pod's containers hold parts of GPUs on a node.

A Grant is a namespaced object owned by its pod. The controller writes it, and again when its pod is resized; for
everything after placement it is the only authority.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from lamina.core.fields import Name, Natural, camel_case, means
from lamina.core.gpu_facts import MigInstance as MigInstance
from lamina.core.gpu_facts import Mode

MAX_CONTAINERS = 200
"""The most containers of a pod, init containers included, that are read: each event of a pod must take little time."""
MAX_GPUS = 1024
"""The most GPUs, or replicas of GPUs, that one container can request."""


class ComputePolicy(StrEnum):
    """What a share of compute means: nothing held, never more than the share, at least the share under load, or a part
    of the GPU's processors, which MPS holds."""

    NONE = "none"
    CAP = "cap"
    WEIGHT = "weight"
    THREADS = "threads"

    @property
    def by_time(self) -> bool:
        """Whether the share is one of the GPU's time, which Lamina measures and holds."""
        return self in (ComputePolicy.CAP, ComputePolicy.WEIGHT)


class Share(Struct, frozen=True, kw_only=True, rename=camel_case):
    """Part of one GPU for one container."""

    gpu: Annotated[Name, means("UUID of the GPU")]
    memory_mib: Annotated[Natural, means("Memory limit in MiB")]
    physical_mib: Annotated[
        Natural, means("Part of the memory in MiB that is guaranteed to fit on the GPU; 0 means all of it")
    ] = 0
    cores: Annotated[Natural, means("Percent of the GPU's compute time; 0 means no share is set")] = 0
    mode: Annotated[Mode, means("Mode of the GPU")] = Mode.QUOTA
    exclusive: Annotated[bool, means("No other container may use the GPU at the same time")] = False
    compute_policy: Annotated[
        ComputePolicy,
        means(
            "How the share of compute is enforced: not at all, as an upper limit, under contention, or by MPS as a "
            "part of the GPU's processors"
        ),
    ] = ComputePolicy.NONE
    most_sharers: Annotated[
        Natural | None, means("Most containers on the GPU, including this one; absent leaves it to the GPU's slots")
    ] = None
    one_isolation: Annotated[
        bool, means("The GPU only serves shares of the same kind: all with a share of compute, or all without")
    ] = False
    most_cores: Annotated[
        Natural, means("Percent of the GPU's compute time up to which idle time is lent; 0 means all of it")
    ] = 0
    most_memory_mib: Annotated[
        Natural, means("Memory in MiB up to which free memory is lent; 0 means none is lent")
    ] = 0
    mig: Annotated[MigInstance | None, means("MIG instance of the share if the mode is mig")] = None
    """The agent of the node creates and removes it."""

    @property
    def limit_mib(self) -> int:
        """The most memory that it may hold."""
        return max(self.memory_mib, self.most_memory_mib)


class ContainerSize(Struct, frozen=True, kw_only=True, rename=camel_case):
    """What a container may use of each of its GPUs since it was resized."""

    generation: Annotated[Natural, means("Grows with each change of the size")]
    memory_mib: Annotated[Natural, means("Memory limit in MiB")]
    cores: Annotated[Natural, means("Percent of the GPU's compute time; 0 means no share is set")] = 0


HIGH, LOW = 0, 1
"""The priorities of containers on a GPU."""


class ContainerGrant(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """The shares of one container."""

    name: Annotated[Name, means("Name of the container")]
    shares: Annotated[tuple[Share, ...], Meta(max_length=MAX_GPUS), means("One share for each GPU of the container")]
    init: Annotated[bool, means("Whether this is an init container")] = False
    sidecar: Annotated[bool, means("Whether this is an init container that keeps running")] = False
    priority: Annotated[Natural | None, means("0 is high, 1 is low; absent if not requested")] = None
    oversubscribed: Annotated[bool, means("Whether the node grants more memory than its GPUs have")] = False
    log_level: Annotated[Natural, means("Log level of the facade, from 0 (errors) to 4 (debug)")] = 1
    because: Annotated[str, means("Which mode the GPUs are in and why, for people")] = ""
    size: Annotated[ContainerSize | None, means("What the container may use if it was resized, at most its shares")] = (
        None
    )


class Grant(Struct, frozen=True, kw_only=True, rename=camel_case):
    """The shares of one pod, written by the controller."""

    pod: Annotated[Name, means("Name of the pod")]
    pod_uid: Annotated[Name, means("UID of the pod")]
    node: Annotated[Name, means("Node of the pod and its GPUs")]
    dialect: Annotated[str, means("Dialect of the pod's requests: hami, volcano or cce")]
    containers: Annotated[tuple[ContainerGrant, ...], Meta(max_length=MAX_CONTAINERS), means("Containers with shares")]
    revision: Annotated[Natural, means("Grows with each change")] = 0


def grant_name(pod: str, pod_uid: str) -> str:
    """The name of a pod's grant. The UID's part keeps a pod apart from a later one of the same name."""
    return f"{pod[:240].rstrip('.-')}-{pod_uid[:8]}"
