"""What admission changes in a new pod: the defaults that its dialect promises."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.requests import PodRequest
from lamina.dialects.containers import ContainerManifest, read_containers
from lamina.dialects.parser import (
    DEFAULT_SCHEDULER,
    dialect_of,
    read_named,
    read_pod,
    without_zero_counts,
    zero_counts,
)
from lamina.dialects.patches import PatchOperation, remove_resource, rename_resource
from lamina.dialects.registry import NameIndex, name_index
from lamina.errors import BadInput

IGNORING_LABELS = ("lamina.dev/webhook", "hami.io/webhook")
"""With the value `ignore`, they keep admission from a pod, or from all pods of a namespace."""


def scheduler_names(config: Config) -> tuple[str, ...]:
    """Names in `spec.schedulerName` under which Lamina places pods."""
    return tuple(dict.fromkeys((*config.schedulers.served, config.schedulers.assigned or DEFAULT_SCHEDULER)))


def places(pod_spec: Mapping[str, Any], config: Config) -> bool:
    """Whether pods with this specification name a scheduler under which Lamina places pods."""
    return (pod_spec.get("schedulerName") or DEFAULT_SCHEDULER) in scheduler_names(config)


def unserved_warning(pod: Mapping[str, Any], config: Config) -> str:
    """What to tell who creates a pod with shares for a scheduler that Lamina does not serve; else empty.

    The number of GPUs is no share: plugins of others offer GPUs under the same name.
    """
    spec = pod.get("spec") or {}
    if places(spec, config):
        return ""
    counts = {names.count for names in name_index(config).names.values()}
    requested = {name for container in read_named(pod, name_index(config)) for name in container.requested}
    shares = sorted((requested & name_index(config).owners.keys()) - counts)
    if not shares:
        return ""
    named = spec.get("schedulerName") or DEFAULT_SCHEDULER
    better = config.schedulers.assigned or scheduler_names(config)[0]
    return (
        f"schedulerName {named} is not in schedulers.served, so Lamina does not place this pod; name {better}, unless "
        f"another system serves {shares[0]}"
    )


def fill_defaults(pod: Mapping[str, Any], request: PodRequest | None, config: Config) -> tuple[PatchOperation, ...]:
    """What is to be changed in a new pod with this request, in the order in which it can be applied.

    A count of 0 GPUs is removed, because schedulers ask for the pod's placement and binding by the name alone. Empty
    where the pod belongs to another scheduler, or names no GPU. Raises BadInput for a pod that is already
    assigned to a node: its share would not be counted.
    """
    spec = pod.get("spec") or {}
    if not places(spec, config):
        return ()
    index = name_index(config)
    containers = read_named(pod, index)
    removals = [
        change
        for container in containers
        for name in zero_counts(container, index)
        for change in remove_resource(container, name)
    ]
    if request is None:
        return tuple(removals)
    check_unassigned(spec)
    dialect, left = dialect_of(request), [without_zero_counts(container, index) for container in containers]
    return (
        *removals,
        *renames(containers, index),
        *_fill_pod(spec, dialect.scheduler_name(config), config),
        *dialect.fill_defaults(read_pod(pod, left, index), request, index.names[dialect.name]),
    )


def renames(containers: Iterable[ContainerManifest], index: NameIndex) -> Iterator[PatchOperation]:
    """What gives resources that containers request by other names the ones in force."""
    for container in containers:
        for other, name in index.aliases.items():
            yield from rename_resource(container, other, name)


def check_unassigned(spec: Mapping[str, Any]) -> None:
    """Raises BadInput for the specification of a new pod that passes the scheduler by."""
    if spec.get("nodeName"):
        raise BadInput(f"the pod is already assigned to node {spec['nodeName']}; remove nodeName so that it is placed")


def explain_missing_defaults(pod: Mapping[str, Any], request: PodRequest, config: Config) -> str:
    """Why a pod that admission has not filled in is refused, or nothing.

    kubelet allocates GPUs by one resource alone: a container with a share that does not request it would hold the share
    on paper and start without any GPU.
    """
    dialect, requesting = dialect_of(request), {container.container for container in request.containers}
    names = name_index(config).names[dialect.name]
    for container in read_containers(pod):
        if container.name in requesting and not dialect.has_defaults(container, names):
            return (
                f"{container.where}: {names.ticket} is missing because admission has not seen this pod; "
                f"{_ignored(pod)}delete the pod and create it again"
            )
    return ""


def _ignored(pod: Mapping[str, Any]) -> str:
    """What to do first where a label of the pod keeps admission from it."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    found = [label for label in IGNORING_LABELS if labels.get(label) == "ignore"]
    return f"remove its label {found[0]}=ignore, " if found else ""


def _fill_pod(spec: Mapping[str, Any], scheduler: str, config: Config) -> Iterator[PatchOperation]:
    named = spec.get("schedulerName")
    if (named or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER and scheduler not in ("", named):
        yield PatchOperation("/spec/schedulerName", scheduler)
    if config.admission.runtime_class_name and spec.get("runtimeClassName") is None:
        yield PatchOperation("/spec/runtimeClassName", config.admission.runtime_class_name)
