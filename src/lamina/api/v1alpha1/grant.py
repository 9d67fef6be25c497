"""The spec of a Grant: which parts of which GPUs the containers of one pod have.

A Grant is a namespaced object owned by its pod. The controller writes it, and again when its pod is
resized. Names, order and defaults of the fields
are what existing objects have: add fields, change none. Numbers, names and lists are bounded, as in Inventory.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from lamina.api.v1alpha1.bounds import Mode, Name, Natural
from lamina.model.requests import MAX_CONTAINERS, MAX_GPUS


class GrantedMigInstance(Struct, frozen=True, kw_only=True):
    """The MIG instance that a share consists of."""

    profile: Annotated[Name, Meta(description="MIG profile, such as 1g.5gb")]
    start: Annotated[Natural, Meta(description="Memory slice at which the instance begins")]


class Share(Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of one GPU."""

    gpu: Annotated[Name, Meta(description="UUID of the GPU")]
    memory_mib: Annotated[Natural, Meta(description="Memory limit in MiB")] = field(name="memoryMiB")
    physical_mib: Annotated[
        Natural, Meta(description="Part of the memory in MiB that is guaranteed to fit on the GPU; 0 means all of it")
    ] = field(name="physicalMiB", default=0)
    cores: Annotated[Natural, Meta(description="Percent of the GPU's compute time; 0 means no share is set")] = 0
    mode: Annotated[Mode, Meta(description="Mode of the GPU")] = "quota"
    exclusive: Annotated[bool, Meta(description="No other container may use the GPU at the same time")] = False
    compute_policy: Annotated[
        Literal["none", "cap", "weight", "threads"],
        Meta(
            description="How the share of compute is enforced: not at all, as an upper limit, under contention, or by "
            "MPS as a part of the GPU's processors"
        ),
    ] = "none"
    most_sharers: Annotated[
        Natural | None,
        Meta(description="Most containers on the GPU, including this one; absent leaves it to the GPU's slots"),
    ] = None
    one_isolation: Annotated[
        bool,
        Meta(description="The GPU only serves shares of the same kind: all with a share of compute, or all without"),
    ] = False
    most_cores: Annotated[
        Natural, Meta(description="Percent of the GPU's compute time up to which idle time is lent; 0 means all of it")
    ] = 0
    most_memory_mib: Annotated[
        Natural, Meta(description="Memory in MiB up to which free memory is lent; 0 means none is lent")
    ] = field(name="mostMemoryMiB", default=0)
    mig: Annotated[GrantedMigInstance | None, Meta(description="MIG instance of the share if the mode is mig")] = None


class ContainerSize(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a container may use of each of its GPUs since it was resized."""

    generation: Annotated[Natural, Meta(description="Grows with each change of the size")]
    memory_mib: Annotated[Natural, Meta(description="Memory limit in MiB")] = field(name="memoryMiB")
    cores: Annotated[Natural, Meta(description="Percent of the GPU's compute time; 0 means no share is set")] = 0


class ContainerGrant(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The shares of one container."""

    name: Annotated[Name, Meta(description="Name of the container")]
    shares: Annotated[
        tuple[Share, ...], Meta(max_length=MAX_GPUS, description="One share for each GPU of the container")
    ]
    init: Annotated[bool, Meta(description="Whether this is an init container")] = False
    sidecar: Annotated[bool, Meta(description="Whether this is an init container that keeps running")] = False
    priority: Annotated[Natural | None, Meta(description="0 is high, 1 is low; absent if not requested")] = None
    oversubscribed: Annotated[bool, Meta(description="Whether the node grants more memory than its GPUs have")] = False
    log_level: Annotated[Natural, Meta(description="Log level of the facade, from 0 (errors) to 4 (debug)")] = 1
    because: Annotated[str, Meta(description="Which mode the GPUs are in and why, for people")] = ""
    size: Annotated[
        ContainerSize | None, Meta(description="What the container may use if it was resized, at most its shares")
    ] = None


class Grant(Struct, frozen=True, kw_only=True, rename="camel"):
    """The shares of one pod, written by the controller."""

    pod: Annotated[Name, Meta(description="Name of the pod")]
    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    node: Annotated[Name, Meta(description="Node of the pod and its GPUs")]
    dialect: Annotated[str, Meta(description="Dialect of the pod's requests: hami, volcano or cce")]
    containers: Annotated[
        tuple[ContainerGrant, ...], Meta(max_length=MAX_CONTAINERS, description="Containers with shares")
    ]
    revision: Annotated[Natural, Meta(description="Grows with each change")] = 0
