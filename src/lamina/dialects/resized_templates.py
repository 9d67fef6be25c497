"""Another size in the pod template of a workload, written as the template's dialect writes it."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.requests import ContainerRequest
from lamina.dialects.containers import read_containers
from lamina.dialects.parser import dialect_of, parse, read_pod
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import WantedSize
from lamina.dialects.registry import name_index
from lamina.errors import BadInput


def resize_template(template: Mapping[str, Any], container: str, size: WantedSize, config: Config) -> dict[str, Any]:
    """The template in which the container requests this size. Raises BadInput where its dialect cannot say it."""
    before = _request(template, container, config)
    request = parse(template, config)
    assert request is not None and before is not None
    dialect, index, containers = dialect_of(request), name_index(config), read_containers(template)
    manifest = read_pod(template, containers, index)
    found = next(each for each in containers if each.name == container)
    changed = _apply(template, dialect.with_size(manifest, found, size, index.names[dialect.name]))
    after = _request(changed, container, config)
    memory = before.memory_mib if size.memory_mib is None else size.memory_mib
    cores = before.cores if size.cores is None else size.cores
    if (after.memory_mib, after.cores) != (memory, cores):
        raise BadInput(
            f'container "{container}": the {dialect.name} dialect cannot request this size; edit the template'
        )
    return changed


def _request(template: Mapping[str, Any], container: str, config: Config) -> ContainerRequest:
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
