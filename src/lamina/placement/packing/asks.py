"""What a pod asks, in the terms of the arrays: an amount for each kind of GPU."""

from collections.abc import Collection

from lamina.core.gpus import Mode
from lamina.core.host_size import HostSize
from lamina.core.requests import PodRequest
from lamina.placement.packing.cluster import MAX_GPUS, REFUSED, Ask
from lamina.placement.state.modes import accepted

GpuKind = tuple[str, int, int]
"""Model, MiB that may be granted, percent of time that may be granted."""
NO_GPU: GpuKind = "", 1, 1
"""The arrays need one kind even where there is no GPU."""
_SHARING = Mode.QUOTA, Mode.MPS
"""The modes in which a GPU has free memory and time; which of the two a GPU is in makes no difference to the arrays."""


def ask_of(request: PodRequest | None, size: HostSize, kinds: Collection[GpuKind]) -> Ask | None:
    """What a pod of this size asks, or None where the arrays cannot express it.

    They express one container with at most MAX_GPUS GPUs that names no single GPUs and accepts shared ones.
    """
    if request is None:
        return Ask(size.cpu, size.memory_mib, 0, (0,) * len(kinds), 0)
    selector = request.selector
    names_gpus = selector.uuids or selector.not_uuids or not accepted(_SHARING, selector)
    if len(request.containers) != 1 or names_gpus:
        return None
    [container] = request.containers
    if container.count > MAX_GPUS:
        return None
    memory = []
    for model, capacity, cores in kinds:
        needed = container.memory_on(capacity)
        fits = selector.accepts(model) and needed <= capacity and container.cores <= cores
        memory.append(needed if fits else REFUSED)
    return Ask(size.cpu, size.memory_mib, container.count, tuple(memory), container.cores)
