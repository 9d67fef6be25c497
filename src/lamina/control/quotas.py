"""Quotas of a namespace on GPU memory and compute, written as HAMi writes them in a ResourceQuota.

    spec: {hard: {limits.nvidia.com/gpumem: 20000, limits.nvidia.com/gpucores: 200}}

Kubernetes stores such keys and counts nothing for them, so we do. Amounts are per GPU times GPUs; a pod needs the
larger of its largest init container and all that run side by side.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dialects import hami
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity
from lamina.model.ledger import Taken
from lamina.model.requests import ContainerRequest, PodRequest
from lamina.ports.kube import Object


class Quota(NamedTuple):
    """What one ResourceQuota allows in sum; None where it does not say."""

    name: str
    memory_mib: int | None
    cores: int | None


class Amounts(NamedTuple):
    """Memory in MiB, or None where it depends on the GPU, and cores in percent, over all GPUs of a pod."""

    memory_mib: int | None
    cores: int


class Quotas:
    """The quotas of all namespaces, as they are told."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Object]] = {}

    def seen(self, obj: Object) -> None:
        meta = obj["metadata"]
        self._by_namespace.setdefault(meta["namespace"], {})[meta["name"]] = obj

    def gone(self, obj: Object) -> None:
        meta = obj["metadata"]
        self._by_namespace.get(meta["namespace"], {}).pop(meta["name"], None)

    def objects(self) -> Iterator[tuple[str, Object]]:
        """All quotas, each with its namespace."""
        for namespace, found in list(self._by_namespace.items()):
            yield from ((namespace, quota) for quota in list(found.values()))

    def of(self, namespace: str, config: Config) -> list[Quota]:
        """Those of the namespace that limit our resources."""
        quotas = (_read(obj, config) for obj in self._by_namespace.get(namespace, {}).values())
        return [quota for quota in quotas if quota.memory_mib is not None or quota.cores is not None]


def asked(request: PodRequest) -> Amounts:
    """What the request comes to before a GPU is chosen."""
    memory = _peak(request, lambda each: each.count * (each.memory_mib or 0))
    known = all(each.memory_mib is not None for each in request.containers)
    return Amounts(memory if known else None, _peak(request, lambda each: each.count * each.cores))


def granted(taken: Iterable[Taken]) -> Amounts:
    """What shares on chosen GPUs come to."""
    held = list(taken)
    return Amounts(sum(each.memory_mib for each in held), sum(each.cores for each in held))


def excess(
    quotas: Iterable[Quota], used: Callable[[], Taken], amounts: Amounts, config: Config, *, who: str = "the pod"
) -> str:
    """The sentence that says which quota the amounts that `who` asks exceed, or nothing.

    `used` is what the namespace holds.
    """
    names = hami(config)
    taken: Taken | None = None
    for quota in quotas:
        taken = used() if taken is None else taken
        for name, hard, held, more in (
            (names.memory, quota.memory_mib, taken.memory_mib, amounts.memory_mib),
            (names.cores, quota.cores, taken.cores, amounts.cores),
        ):
            if hard is None:
                continue
            if more is None and hard == 0:
                return f"the quota {quota.name} allows no {name} in this namespace"
            if more is not None and (held + more > hard and more > 0):
                return f"the quota {quota.name} allows {hard} of {name}; {held} are taken and {who} asks {more}"
    return ""


def _peak(request: PodRequest, amount: Callable[[ContainerRequest], int]) -> int:
    running = sum(amount(each) for each in request.containers if each.sidecar or not each.init)
    beside = 0
    peak = running
    for each in request.containers:
        if each.sidecar:
            beside += amount(each)
        elif each.init:
            peak = max(peak, beside + amount(each))
    return peak


def _read(obj: Mapping[str, Any], config: Config) -> Quota:
    names = hami(config)
    hard = (obj.get("spec") or {}).get("hard") or {}
    memory = _whole(hard.get(f"limits.{names.memory}"))
    cores = _whole(hard.get(f"limits.{names.cores}"))
    factor = config.hami.memory_factor
    return Quota(obj["metadata"]["name"], None if memory is None else memory * factor, cores)


def _whole(written: object) -> int | None:
    """The amount rounded down; one that cannot be read allows nothing, as an explicit 0 does."""
    if written is None:
        return None
    try:
        return max(0, int(parse_quantity(written, where="hard").value))
    except BadInput:
        return 0
