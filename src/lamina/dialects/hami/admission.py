"""The defaults that HAMi's dialect promises, as changes to a new pod."""

from collections.abc import Iterator, Mapping

from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.containers import ContainerManifest
from lamina.dialects.hami.fractions import PERCENTAGE, read_fraction
from lamina.dialects.hami.parser import COUNTS_GPUS
from lamina.dialects.patches import PatchOperation, add_limits, add_metadata, add_request, remove_resource
from lamina.dialects.protocol import PodManifest, ResourceNames


def fill_defaults(pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
    """The count where only the rest is given, the cores of a whole GPU, and what a fraction stands for."""
    requests = {container.container: container for container in request.containers}
    if request.native_devices and any(_lacks_cores(container, requests, names) for container in pod.containers):
        yield from _mark_count(pod)
    for container in pod.containers:
        if container.name in requests:
            yield from _fill_container(container, requests, names)


def _lacks_cores(container: ContainerManifest, requests: Mapping[str, ContainerRequest], names: ResourceNames) -> bool:
    """Whether the container requests a whole GPU by its count alone."""
    request = requests.get(container.name)
    return request is not None and request.whole and names.cores not in container.requested


def _mark_count(pod: PodManifest) -> Iterator[PatchOperation]:
    """Mark that the pod only counts GPUs: cores that are filled in look like cores that are requested."""
    return add_metadata("annotations", pod.annotations, {COUNTS_GPUS: "true"})


def _fill_container(
    container: ContainerManifest, requests: Mapping[str, ContainerRequest], names: ResourceNames
) -> Iterator[PatchOperation]:
    request = requests[container.name]
    fraction = read_fraction(container, names)
    if fraction is not None:
        yield from add_limits(container, {names.count: "1", names.memory_percentage: str(fraction)})
        yield from add_request(container, names.count, "1")
        yield from remove_resource(container, PERCENTAGE)
        return
    limits: dict[str, str] = {}
    if names.ticket not in container.requested:
        limits[names.ticket] = str(request.count)
    if _lacks_cores(container, requests, names):
        limits[names.cores] = str(request.cores)
    yield from add_limits(container, limits)
