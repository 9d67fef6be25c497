"""Annotations that limit what containers may use beyond their shares, in any dialect.

    lamina.dev/gpucores-limit: "60"                for every container of the pod that requests a share of compute
    lamina.dev/gpucores-limit: "main=60,side=30"   for these containers
    lamina.dev/gpumem-limit: "main=16000"          MiB of each GPU

The request is placed and guaranteed. What others leave of the GPU's time is lent up to the limit, and memory while the
GPU has room.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from lamina.core.grants import ComputePolicy
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.choices import MAX_ITEMS, split_list
from lamina.dialects.containers import MAX_MEMORY, quote
from lamina.errors import BadInput


def read_numbers(key: str, written: str, most: int, wanted: str) -> dict[str, int]:
    """Numbers from 1 to `most` by container; the empty name stands for all.

    Raises BadInput, which says that the annotation must be as `wanted`.
    """
    if written.count(",") >= MAX_ITEMS:
        raise BadInput(f"annotation {key} may have at most {MAX_ITEMS} items")
    numbers: dict[str, int] = {}
    for item in split_list(written):
        name, named, number = item.rpartition("=")
        plain = number.isascii() and number.isdecimal() and len(number) <= len(str(most))
        if not (plain and 1 <= int(number) <= most):
            raise BadInput(f"annotation {key} must be {wanted}, got {quote(written)}")
        if name in numbers or (named and not name) or "" in numbers or (not named and numbers):
            raise BadInput(f"annotation {key} must be one number or one for each container, got {quote(written)}")
        numbers[name] = int(number)
    return numbers


def check_names(key: str, numbers: Mapping[str, int], containers: Iterable[str]) -> None:
    """Raises BadInput for a container that is not among those which request GPUs."""
    if unknown := sorted(numbers.keys() - {"", *containers}):
        raise BadInput(f"annotation {key}: container {quote(unknown[0])} requests no GPU; remove it")


COMPUTE_LIMIT = "lamina.dev/gpucores-limit"


def limit_compute(request: PodRequest, annotations: Mapping[str, str]) -> PodRequest:
    """The request with the limits that the pod's annotation sets. Raises BadInput for one that cannot be held."""
    written = annotations.get(COMPUTE_LIMIT, "")
    if not written.strip():
        return request
    limits = read_numbers(COMPUTE_LIMIT, written, 100, "percent from 1 to 100, as 60 or main=60,side=30")
    if request.compute_policy is not ComputePolicy.WEIGHT:
        raise BadInput(
            f"annotation {COMPUTE_LIMIT} needs the compute policy weight, under which idle time is lent; "
            f"the policy of this pod is {request.compute_policy}; remove the annotation"
        )
    check_names(COMPUTE_LIMIT, limits, (container.container for container in request.containers))
    containers = tuple(_with_most_cores(container, limits) for container in request.containers)
    return structs.replace(request, containers=containers)


def _with_most_cores(container: ContainerRequest, limits: Mapping[str, int]) -> ContainerRequest:
    limit = limits.get(container.container, limits.get("", 0))
    if not limit or (container.container not in limits and not container.cores):
        return container
    if limit < max(1, container.cores):
        raise BadInput(
            f"annotation {COMPUTE_LIMIT}: the limit of container {quote(container.container)} must be at least its "
            f"request, {container.cores}, got {limit}"
        )
    if not container.cores:
        raise BadInput(
            f"annotation {COMPUTE_LIMIT}: container {quote(container.container)} requests no share of compute; "
            "request one as well"
        )
    return structs.replace(container, most_cores=limit)


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
    containers = tuple(_with_most_memory(container, limits) for container in request.containers)
    return structs.replace(request, containers=containers)


def _with_most_memory(container: ContainerRequest, limits: Mapping[str, int]) -> ContainerRequest:
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
