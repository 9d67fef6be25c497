"""The annotation that lets a container hold more memory than it requests, in any dialect.

    lamina.dev/gpumem-limit: "16000"                     for every container of the pod that requests memory
    lamina.dev/gpumem-limit: "main=16000,side=8000"      for these containers; MiB of each GPU

The request is placed and guaranteed. Memory up to the limit is lent while the GPU has room.
"""

from collections.abc import Mapping

from msgspec import structs

from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.container_numbers import check_names, read_numbers
from lamina.dialects.containers import MAX_MEMORY, quote
from lamina.errors import BadInput

MEMORY_LIMIT = "lamina.dev/gpumem-limit"


def limit_memory(request: PodRequest, annotations: Mapping[str, str]) -> PodRequest:
    """The request with the limits that the pod's annotation sets. Raises BadInput for one that cannot be held."""
    written = annotations.get(MEMORY_LIMIT, "")
    if not written.strip():
        return request
    limits = read_numbers(
        MEMORY_LIMIT, written, MAX_MEMORY, f"MiB from 1 to {MAX_MEMORY}, as 16000 or main=16000,side=8000"
    )
    check_names(MEMORY_LIMIT, limits, (container.container for container in request.containers))
    containers = tuple(_limited(container, limits) for container in request.containers)
    return structs.replace(request, containers=containers)


def _limited(container: ContainerRequest, limits: Mapping[str, int]) -> ContainerRequest:
    named = container.container in limits
    limit = limits.get(container.container, limits.get("", 0))
    if not limit:
        return container
    if container.exclusive:
        if not named:
            return container
        raise BadInput(
            f"annotation {MEMORY_LIMIT}: container {quote(container.container)} has its GPUs to itself; remove it"
        )
    if container.most_memory_mib and container.most_memory_mib != limit:
        raise BadInput(
            f"annotation {MEMORY_LIMIT}: container {quote(container.container)} has another limit, "
            f"{container.most_memory_mib} MiB, by its dialect; remove one of them"
        )
    if limit < (container.memory_mib or 0):
        raise BadInput(
            f"annotation {MEMORY_LIMIT}: the limit of container {quote(container.container)} must be at least its "
            f"request, {container.memory_mib} MiB, got {limit}"
        )
    return structs.replace(container, most_memory_mib=0 if limit == container.memory_mib else limit)
