"""The status of an Inventory: what is free on the node, and which of its survivors are confirmed.

Agents write the spec and do not know all grants, so the controller writes the status, by its own subresource.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from lamina.core.fields import Name, Natural
from lamina.core.survivors import MAX_SURVIVORS

MAX_HOLDS = 100
"""Per node. Room beyond that counts too, but no view shows it."""


class HeldRoom(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Room of one GPU that is kept for a pod which is not bound yet."""

    namespace: Annotated[Name, Meta(description="Namespace of the pod")]
    pod: Annotated[Name, Meta(description="Name of the pod")]
    pod_uid: Annotated[Name, Meta(description="UID of the pod")] = field(name="podUID")
    gpu: Annotated[Name, Meta(description="UUID of the GPU")]
    memory_mib: Annotated[Natural, Meta(description="Memory in MiB")] = field(name="memoryMiB")
    cores: Annotated[Natural, Meta(description="Compute time in percent of the GPU")] = 0
    slots: Annotated[Natural, Meta(description="Containers")] = 1
    whole: Annotated[bool, Meta(description="Whether no others may join")] = False
    mps: Annotated[bool, Meta(description="Whether the containers are clients of MPS")] = False
    until: (
        Annotated[int, Meta(ge=0, description="End of the hold unless the pod is bound, in seconds since 1970")] | None
    ) = None
    nominated: Annotated[
        bool, Meta(description="Whether pods are evicted for it; what they still hold of the GPU is part of this room")
    ] = False


class InventoryStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the node has, and sums over the GPUs that take new shares: healthy, not cordoned, and shared by grants."""

    models: Annotated[str, Meta(description="Models of all GPUs with their numbers, such as 2 x Tesla T4")]
    memory_mib: Annotated[Natural, Meta(description="Memory of all GPUs in MiB")] = field(name="memoryMiB")
    free_memory_mib: Annotated[Natural, Meta(description="Free memory of all such GPUs in MiB")] = field(
        name="freeMemoryMiB"
    )
    free_cores: Annotated[Natural, Meta(description="Free compute time of all such GPUs in percent of one GPU")]
    largest_free_mib: Annotated[
        Natural, Meta(description="Most memory in MiB that is free on one of these GPUs, so that one share can have it")
    ] = field(name="largestFreeMiB")
    survivors: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_SURVIVORS,
            description="Those of spec.survivors that had a grant on the node, as <namespace>/<UID>: they count in "
            "quotas of their namespaces too",
        ),
    ] = ()
    holds: Annotated[
        tuple[HeldRoom, ...],
        Meta(max_length=MAX_HOLDS, description="Room that is kept for pods, such as members of pod groups that wait"),
    ] = ()
