"""High priority, which stops the neighbors of a container on a GPU. An annotation requests it in any dialect, and it
counts only in namespaces for which it is configured.

    lamina.dev/latency-class: "true"        the work of every container of the pod that requests GPUs comes first
    lamina.dev/latency-class: "main,side"   that of these containers
"""

from collections.abc import Mapping

from msgspec import structs

from lamina.core.config import HIGH_PRIORITY_NAMESPACES, Config
from lamina.core.grants import HIGH, LOW
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.choices import MAX_ITEMS, split_list
from lamina.dialects.container_limits import check_names
from lamina.dialects.containers import quote
from lamina.errors import BadInput

LATENCY_CLASS = "lamina.dev/latency-class"


def with_latency_class(request: PodRequest, annotations: Mapping[str, str]) -> PodRequest:
    """The request with high priority for the containers that the pod's annotation names. Raises BadInput."""
    written = annotations.get(LATENCY_CLASS, "")
    if written.strip().lower() in ("", "false"):
        return request
    if written.count(",") >= MAX_ITEMS:
        raise BadInput(f"annotation {LATENCY_CLASS} may have at most {MAX_ITEMS} items")
    every = written.strip().lower() == "true"
    named = dict.fromkeys(() if every else split_list(written), HIGH)
    check_names(LATENCY_CLASS, named, (container.container for container in request.containers))
    containers = tuple(
        _first(container) if every or container.container in named else container for container in request.containers
    )
    return structs.replace(request, containers=containers)


def _first(container: ContainerRequest) -> ContainerRequest:
    if container.priority not in (None, HIGH):
        raise BadInput(
            f"annotation {LATENCY_CLASS}: container {quote(container.container)} also requests the priority "
            f"{container.priority}; remove one of the two"
        )
    return structs.replace(container, priority=HIGH)


def lower_priorities(request: PodRequest, namespace: str, config: Config) -> PodRequest:
    """The request with low priorities in place of high ones, if the namespace may not have those, and a warning for
    each."""
    if config.allows_high_priority(namespace) or all(each.priority != HIGH for each in request.containers):
        return request
    lowered = tuple(_lowered(container) for container in request.containers)
    warnings = tuple(
        f'container "{container.container}": priority {HIGH} on a GPU counts as {LOW}, because '
        f'{HIGH_PRIORITY_NAMESPACES} in Lamina\'s configuration does not name the namespace "{namespace}"'
        for container in request.containers
        if container.priority == HIGH
    )
    return structs.replace(request, containers=lowered, warnings=(*request.warnings, *warnings))


def _lowered(container: ContainerRequest) -> ContainerRequest:
    return structs.replace(container, priority=LOW) if container.priority == HIGH else container
