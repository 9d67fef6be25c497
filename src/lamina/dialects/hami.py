"""The vocabulary of HAMi and of 4paradigm's scheduler, its ancestor: pod specification in, requests out.

What a container may ask, per GPU that it gets:

    nvidia.com/gpu                 number of different GPUs; 1 where only one of the others is named
    nvidia.com/gpumem              MiB; without amount and percentage all of the memory (or `defaultMemory`)
    nvidia.com/gpumem-percentage   percent of the memory, 1 to 100
    nvidia.com/gpucores            percent of the time, 0 to 100; 0 takes whatever is left
    nvidia.com/priority            0 high, 1 low

A count alone, and 100 % of the memory without cores, is a whole GPU: cores 100, nobody else on it. `defaultMemory`
over 0 turns a count alone into a share of that size. HAMi reads some mistakes as something else (an amount beside a
percentage, a percentage of 0, a fraction); here these are refused. Between an amount and a percentage HAMi takes the
amount without a word, so the pair is refused too.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dialects import annotations
from lamina.dialects.config import Config
from lamina.dialects.resources import ResourceNames, asked_by, check_vocabulary, resource_names
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity
from lamina.model.requests import ContainerRequest, PodRequest

NAME = "hami"


class Container(NamedTuple):
    """A container of a pod: where it stands, what it is, what it asks by resource name."""

    pointer: str
    spec: Mapping[str, Any]
    asked: Mapping[str, object]
    init: bool
    sidecar: bool

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))


def containers_of(pod: Mapping[str, Any]) -> Iterator[Container]:
    """The containers in the order in which Kubernetes starts them."""
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            init = field == "initContainers"
            sidecar = init and container.get("restartPolicy") == "Always"
            yield Container(f"/spec/{field}/{index}", container, asked_by(container), init, sidecar)


def parse(pod: Mapping[str, Any], config: Config) -> PodRequest | None:
    """What the pod asks of GPUs, or None where it asks none. Raises BadInput with one sentence.

    The answer is the same before and after admission has filled in the defaults.
    """
    containers = tuple(containers_of(pod))
    if not check_vocabulary((name for container in containers for name in container.asked), config):
        return None
    requests = tuple(request for container in containers if (request := _request(container, config)) is not None)
    choices = annotations.read((pod.get("metadata") or {}).get("annotations") or {}, config)
    return PodRequest(
        dialect=NAME,
        containers=requests,
        wishes=choices.wishes,
        node_policy=choices.node_policy,
        gpu_policy=choices.gpu_policy,
        numa_bind=choices.numa_bind,
        compute_policy=config.compute_policy,
    )


def asks(container: Container, names: ResourceNames) -> bool:
    """Whether the container names any of our resources."""
    return any(name in container.asked for name in names.all)


def _request(container: Container, config: Config) -> ContainerRequest | None:
    names = resource_names(config)
    if not asks(container, names):
        return None
    where = f"container {container.name}"
    _check_privilege(container, where)
    _check_limits_equal_requests(container, names, where)
    count = _read_count(container, names, config, where)
    memory_mib, percent = _read_memory(container, names, config, where)
    cores = _read(container, names.cores, where, 0, 100)
    if cores is None:
        cores = 100 if percent == 100 else config.hami.default_cores
    return ContainerRequest(
        container=container.name,
        count=count,
        memory_mib=memory_mib,
        memory_percent=percent,
        cores=cores,
        exclusive=cores == 100 and percent == 100,
        priority=_read(container, names.priority, where, 0, 1),
        init=container.init,
        sidecar=container.sidecar,
    )


def _read_count(container: Container, names: ResourceNames, config: Config, where: str) -> int:
    count = _read(container, names.count, where, 1, None)
    if count is not None:
        return count
    named = next(name for name in names.all if name in container.asked)
    if named == names.priority:
        raise BadInput(f"{where} names {named} but asks no GPU; name {names.count} as well")
    if config.hami.default_gpu_num == 0:
        raise BadInput(f"{where} names {named} but no count, and defaultGPUNum is 0; name {names.count} as well")
    return config.hami.default_gpu_num


def _read_memory(
    container: Container, names: ResourceNames, config: Config, where: str
) -> tuple[int | None, int | None]:
    """Memory per GPU as an amount in MiB or as a percentage; exactly one of the two."""
    percent = _read(container, names.memory_percentage, where, 1, 100)
    units = _read(container, names.memory, where, 1, None)
    if units is not None and percent is not None:
        raise BadInput(f"{where} names both {names.memory} and {names.memory_percentage}; name one of them")
    if units is not None:
        return units * config.hami.memory_factor, None
    if percent is None and config.hami.default_memory:
        return config.hami.default_memory, None
    return None, 100 if percent is None else percent


def _read(container: Container, name: str, where: str, least: int, most: int | None) -> int | None:
    """The whole number that the container gives for `name`, or None where it gives none."""
    if name not in container.asked:
        return None
    written = container.asked[name]
    quantity = parse_quantity(written, where=f"{where}: {name}")
    number = quantity.whole
    allowed = f"a whole number from {least} to {most}" if most is not None else f"a whole number from {least}"
    if number is None or number < least or (most is not None and number > most):
        raise BadInput(f"{where}: {name} is {written!r}; allowed is {allowed}")
    if quantity.binary:
        raise BadInput(f"{where}: {name} is {written!r}, a count in units of powers of 1024; allowed is {allowed}")
    return number


def _check_privilege(container: Container, where: str) -> None:
    security = container.spec.get("securityContext")
    if isinstance(security, Mapping) and security.get("privileged") is True:
        raise BadInput(f"{where} is privileged and would see every GPU of its node; a share cannot be held there")


def _check_limits_equal_requests(container: Container, names: ResourceNames, where: str) -> None:
    resources = container.spec.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in names.all:
        if name in limits and name in requests:
            here = f"{where}: {name}"
            if parse_quantity(limits[name], where=here).value != parse_quantity(requests[name], where=here).value:
                raise BadInput(f"{here} has the limit {limits[name]} and the request {requests[name]}; make them equal")
