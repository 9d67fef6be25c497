"""Resizing the shares of a running container: what it may use, next to what counts as taken.

A grant's `shares` are what counts for placement. After a resize the container has a `size` too, which is what it may
use, and never more. Shares grow before the size does, and shrink when the agent has applied the smaller size.
"""

from typing import Annotated

from msgspec import Struct, structs

from lamina.core.fields import Name, Natural, camel_case, means
from lamina.core.grants import ContainerGrant, ContainerSize, Share

RESIZE = "lamina.dev/resize"
"""The annotation with which a user asks for another size, such as main=8000,30."""
RESIZE_STATUS = "lamina.dev/resize-status"
"""The annotation that says what became of it: done, waiting or refused, what was asked for, and why."""
RESIZE_WHEN_HELD = "lamina.dev/resize-when-held"
"""The annotation that says what happens if programs hold more memory than the new size: refuse, the default, or wait.
"""
WAIT = "wait"
MAX_APPLIED = 500
"""Of containers on one node."""


class AppliedSize(Struct, frozen=True, kw_only=True, rename=camel_case, omit_defaults=True):
    """The size that a resized container has on its node."""

    pod_uid: Annotated[Name, means("UID of the pod")]
    container: Annotated[Name, means("Name of the container")]
    generation: Annotated[Natural, means("Generation of the size in the grant that is applied")]
    waiting: Annotated[str, means("Why a later size is not applied yet")] = ""
    held_generation: Annotated[
        Natural, means("Generation of the later size if programs hold more memory than that; otherwise 0")
    ] = 0
    memory_mib: Annotated[Natural, means("Memory limit in MiB that the container has")] = 0
    cores: Annotated[Natural, means("Percent of the GPU's compute time that the container has")] = 0


def size_of(container: ContainerGrant) -> ContainerSize:
    """What the container may use of each of its GPUs, of which it has the same share."""
    first = container.shares[0]
    return container.size or ContainerSize(generation=0, memory_mib=first.memory_mib, cores=first.cores)


def usable(container: ContainerGrant) -> ContainerGrant:
    """The container with the shares that it may use, which may be less than counts as taken."""
    size = container.size
    if size is None:
        return container
    return structs.replace(container, shares=tuple(_with(share, size) for share in container.shares))


def raised(container: ContainerGrant, size: ContainerSize) -> ContainerGrant:
    """The container with shares in which this size has room too; what it may use stays as it is."""
    shares = tuple(
        structs.replace(share, memory_mib=max(share.memory_mib, size.memory_mib), cores=max(share.cores, size.cores))
        for share in container.shares
    )
    return (
        container if shares == container.shares else structs.replace(container, shares=shares, size=size_of(container))
    )


def grows(container: ContainerGrant, size: ContainerSize) -> bool:
    """Whether the container may use more of anything with this size."""
    before = size_of(container)
    return size.memory_mib > before.memory_mib or size.cores > before.cores


def _with(share: Share, size: ContainerSize) -> Share:
    return structs.replace(share, memory_mib=size.memory_mib, cores=size.cores)
