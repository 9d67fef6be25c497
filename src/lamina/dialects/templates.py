"""The pod templates of workloads: what admission changes so that the API server accepts them, and other sizes."""

import contextlib
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects.admission import places, renames, unserved_warning
from lamina.dialects.container_variables import lending_notice
from lamina.dialects.containers import read_containers
from lamina.dialects.parser import dialect_of, parse, read_pod
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import WantedSize
from lamina.dialects.registry import name_index
from lamina.errors import BadInput

WORKLOADS = {
    "": ("replicationcontrollers",),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
}
"""The resources that have templates of pods, by group."""


def fill_template(workload: Mapping[str, Any], config: Config) -> tuple[PatchOperation, ...]:
    """What has to change in a workload, in the order in which it can be applied.

    Empty where its pods are another scheduler's. Raises BadInput as `parse` does where something has to be added.
    """
    pointer, template = find_template(workload)
    if not places(template.get("spec") or {}, config):
        return ()
    index, containers = name_index(config), read_containers(template)
    changes = [
        change for dialect in index.dialects for change in dialect.fill_template(containers, index.names[dialect.name])
    ]
    if any(change.op == "add" for change in changes):
        parse(template, config)
    return tuple(change._replace(pointer=pointer + change.pointer) for change in changes)


def template_condition(amounts: str, config: Config) -> str:
    """CEL: whether `fill_template` has something to do for the limits or requests `amounts` of a container."""
    index = name_index(config)
    conditions = (one.template_condition(amounts, index.names[one.name]) for one in index.dialects)
    return " || ".join(condition for condition in conditions if condition) or "false"


def template_warnings(workload: Mapping[str, Any], namespace: str, config: Config) -> tuple[str, ...]:
    """What the user should know about the pods of a workload in this namespace: that they will be refused, and why."""
    try:
        request = _request(workload, namespace, config)
    except BadInput as problem:
        return (f"its pods will be refused: {problem}",)
    if request is not None:
        return request.warnings
    with contextlib.suppress(BadInput):
        return tuple(filter(None, [unserved_warning(find_template(workload)[1], config)]))
    return ()


def template_notice(workload: Mapping[str, Any], namespace: str, config: Config) -> str:
    """What a namespace needs to know once about the pods of a workload, or nothing."""
    with contextlib.suppress(BadInput):
        if (request := _request(workload, namespace, config)) is not None:
            return lending_notice(request, config)
    return ""


def template_refusal(workload: Mapping[str, Any], namespace: str, config: Config) -> str:
    """Why the pods of a workload in this namespace are refused, or nothing."""
    try:
        _request(workload, namespace, config)
    except BadInput as problem:
        return str(problem)
    return ""


def _request(workload: Mapping[str, Any], namespace: str, config: Config) -> PodRequest | None:
    """What its pods request of Lamina's schedulers. Raises BadInput."""
    _, template = find_template(workload)
    if not places(template.get("spec") or {}, config):
        return None
    return parse({**template, "metadata": {**(template.get("metadata") or {}), "namespace": namespace}}, config)


def find_template(workload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The pointer of the pod template, and the template."""
    spec, pointer = workload.get("spec") or {}, "/spec"
    if spec.get("jobTemplate"):
        spec, pointer = spec["jobTemplate"].get("spec") or {}, f"{pointer}/jobTemplate/spec"
    return f"{pointer}/template", spec.get("template") or {}


def resize_template(template: Mapping[str, Any], container: str, size: WantedSize, config: Config) -> dict[str, Any]:
    """The template in which the container requests this size. Raises BadInput where its dialect cannot say it."""
    template = _apply(template, renames(read_containers(template), name_index(config)))
    before = _container_request(template, container, config)
    request = parse(template, config)
    assert request is not None and before is not None
    dialect, index, containers = dialect_of(request), name_index(config), read_containers(template)
    manifest = read_pod(template, containers, index)
    found = next(each for each in containers if each.name == container)
    changed = _apply(template, dialect.with_size(manifest, found, size, index.names[dialect.name]))
    after = _container_request(changed, container, config)
    memory = before.memory_mib if size.memory_mib is None else size.memory_mib
    cores = before.cores if size.cores is None else size.cores
    if (after.memory_mib, after.cores) != (memory, cores):
        raise BadInput(
            f'container "{container}": the {dialect.name} dialect cannot request this size; edit the template'
        )
    return changed


def _container_request(template: Mapping[str, Any], container: str, config: Config) -> ContainerRequest:
    request = parse(template, config)
    found = next((each for each in request.containers if each.container == container), None) if request else None
    if found is None:
        raise BadInput(f'container "{container}" of the template requests no share of a GPU')
    return found


def _apply(template: Mapping[str, Any], changes: Iterable[PatchOperation]) -> dict[str, Any]:
    changed = copy.deepcopy(dict(template))
    for change in changes:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in change.pointer.split("/")[1:]]
        target: Any = changed
        for part in parents:
            target = target[int(part)] if isinstance(target, list) else target[part]
        if change.op == "remove":
            del target[last]
        else:
            target[last] = change.value
    return changed
