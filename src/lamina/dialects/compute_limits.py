"""The annotation that limits how much idle GPU time a container may use beyond its share, in any dialect.

    lamina.dev/gpucores-limit: "60"                for every container of the pod that requests a share of compute
    lamina.dev/gpucores-limit: "main=60,side=30"   for these containers

The request is placed and guaranteed; what others leave is lent up to the limit.
"""

from collections.abc import Mapping

from msgspec import structs

from lamina.dialects.choices import MAX_ITEMS, split_list
from lamina.dialects.containers import quote
from lamina.errors import BadInput
from lamina.model.grants import ComputePolicy
from lamina.model.requests import ContainerRequest, PodRequest

COMPUTE_LIMIT = "lamina.dev/gpucores-limit"


def limit_compute(request: PodRequest, annotations: Mapping[str, str]) -> PodRequest:
    """The request with the limits that the pod's annotation sets. Raises BadInput for one that cannot be held."""
    written = annotations.get(COMPUTE_LIMIT, "")
    if not written.strip():
        return request
    limits = _read(written)
    if request.compute_policy is not ComputePolicy.WEIGHT:
        raise BadInput(
            f"annotation {COMPUTE_LIMIT} needs the compute policy weight, under which idle time is lent; "
            f"the policy of this pod is {request.compute_policy}; remove the annotation"
        )
    if unknown := sorted(limits.keys() - {"", *(container.container for container in request.containers)}):
        raise BadInput(f"annotation {COMPUTE_LIMIT}: container {quote(unknown[0])} requests no GPU; remove it")
    containers = tuple(_limited(container, limits) for container in request.containers)
    return structs.replace(request, containers=containers)


def _read(written: str) -> dict[str, int]:
    """Percent by container; the empty name stands for all."""
    if written.count(",") >= MAX_ITEMS:
        raise BadInput(f"annotation {COMPUTE_LIMIT} may have at most {MAX_ITEMS} items")
    limits: dict[str, int] = {}
    for item in split_list(written):
        name, named, number = item.rpartition("=")
        if not (number.isascii() and number.isdecimal() and len(number) <= 3 and 1 <= int(number) <= 100):
            raise BadInput(
                f"annotation {COMPUTE_LIMIT} must be percent from 1 to 100, as 60 or main=60,side=30, "
                f"got {quote(written)}"
            )
        if name in limits or (named and not name) or "" in limits or (not named and limits):
            raise BadInput(
                f"annotation {COMPUTE_LIMIT} must be one number or one for each container, got {quote(written)}"
            )
        limits[name] = int(number)
    return limits


def _limited(container: ContainerRequest, limits: Mapping[str, int]) -> ContainerRequest:
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
