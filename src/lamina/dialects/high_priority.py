"""High priority, which stops the neighbors of a container, counts only in namespaces for which it is configured."""

import msgspec

from lamina.core.config import Config
from lamina.core.requests import ContainerRequest, PodRequest

HIGH, LOW = 0, 1
KEY = "sharing.highPriorityNamespaces"


def lower_priorities(request: PodRequest, namespace: str, config: Config, resource: str) -> PodRequest:
    """The request with low priorities in place of high ones, if the namespace may not have those, and a warning for
    each. `resource` is what the priority was requested by."""
    if config.allows_high_priority(namespace) or all(each.priority != HIGH for each in request.containers):
        return request
    lowered = tuple(_lowered(container) for container in request.containers)
    warnings = tuple(
        f'container "{container.container}": {resource} {HIGH} counts as {LOW}, because {KEY} in Lamina\'s '
        f'configuration does not name the namespace "{namespace}"'
        for container in request.containers
        if container.priority == HIGH
    )
    return msgspec.structs.replace(request, containers=lowered, warnings=(*request.warnings, *warnings))


def _lowered(container: ContainerRequest) -> ContainerRequest:
    return msgspec.structs.replace(container, priority=LOW) if container.priority == HIGH else container
