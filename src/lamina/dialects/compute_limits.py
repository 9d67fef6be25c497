"""The annotation that limits how much idle GPU time a container may use beyond its share, in any dialect.

    lamina.dev/gpucores-limit: "60"                for every container of the pod that requests a share of compute
    lamina.dev/gpucores-limit: "main=60,side=30"   for these containers

The request is placed and guaranteed; what others leave is lent up to the limit.
"""

from collections.abc import Mapping

from msgspec import structs

from lamina.core.grants import ComputePolicy
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.container_numbers import check_names, read_numbers
from lamina.dialects.containers import quote
from lamina.errors import BadInput

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
    containers = tuple(_limited(container, limits) for container in request.containers)
    return structs.replace(request, containers=containers)


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
