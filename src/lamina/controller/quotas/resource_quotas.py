"""Quotas of a namespace on GPU memory and compute, written into a ResourceQuota as for HAMi.

    spec: {hard: {limits.nvidia.com/gpumem: 20000, limits.nvidia.com/gpucores: 200}}

Kubernetes stores such keys but does not count them, so Lamina does. Amounts are per GPU times GPUs; a pod needs the
larger of its largest init container and everything that runs side by side.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from lamina.configuration import Config
from lamina.dialects import quota_names
from lamina.dialects.quota_limits import QuotaLimits, quota_limits
from lamina.model.ledger import Taken
from lamina.model.requests import ContainerRequest, PodRequest
from lamina.ports.kube import Object


class QuotaAmounts(NamedTuple):
    """Memory in MiB, or None where it depends on the GPU, and cores in percent, over all GPUs of a pod."""

    memory_mib: int | None
    cores: int


class ResourceQuotas:
    """The observed ResourceQuota objects of all namespaces."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Object]] = {}

    def observe(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._by_namespace.setdefault(metadata["namespace"], {})[metadata["name"]] = obj

    def remove(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._by_namespace.get(metadata["namespace"], {}).pop(metadata["name"], None)

    def objects(self) -> Iterator[tuple[str, Object]]:
        """All quotas, each with its namespace."""
        for namespace, quotas in list(self._by_namespace.items()):
            yield from ((namespace, quota) for quota in list(quotas.values()))

    def of(self, namespace: str, config: Config) -> list[QuotaLimits]:
        """The quotas of the namespace that limit GPU resources."""
        quotas = (quota_limits(obj, config) for obj in self._by_namespace.get(namespace, {}).values())
        return [quota for quota in quotas if quota.memory_mib is not None or quota.cores is not None]

    def uncounted(self, namespace: str, resources: Iterable[str], config: Config) -> str:
        """Why a pod may not have devices of these resources without a grant, as a sentence, or nothing.

        Only Kubernetes counts such devices, by their number, so a limit on memory or compute needs one on that number.
        """
        limiting = self.of(namespace, config)
        hard = [(obj.get("spec") or {}).get("hard") or {} for obj in self._by_namespace.get(namespace, {}).values()]
        for resource in resources if limiting else ():
            if not any(f"requests.{resource}" in each for each in hard):
                return (
                    f"quota {limiting[0].name} does not count devices that kubelet hands out; "
                    f"add requests.{resource} to a quota of this namespace"
                )
        return ""


def requested(request: PodRequest) -> QuotaAmounts:
    """What the request comes to before a GPU is chosen."""
    memory = _peak(request, lambda container: container.count * (container.memory_mib or 0))
    memory_known = all(container.memory_mib is not None for container in request.containers)
    cores = _peak(request, lambda container: container.count * container.cores)
    return QuotaAmounts(memory if memory_known else None, cores)


def granted(taken: Iterable[Taken]) -> QuotaAmounts:
    """What shares of chosen GPUs come to."""
    parts = list(taken)
    return QuotaAmounts(sum(part.memory_mib for part in parts), sum(part.cores for part in parts))


def total(amounts: Iterable[QuotaAmounts]) -> QuotaAmounts:
    """The sum for several pods."""
    parts = list(amounts)
    memory = [part.memory_mib for part in parts if part.memory_mib is not None]
    return QuotaAmounts(sum(memory) if len(memory) == len(parts) else None, sum(part.cores for part in parts))


def excess(
    quotas: Iterable[QuotaLimits],
    used: Callable[[], Taken],
    amounts: QuotaAmounts,
    config: Config,
    *,
    requester: str = "the pod",
) -> str:
    """Which quota the amounts that `requester` requests would exceed, as a sentence, or nothing.

    `used` returns what the namespace holds.
    """
    names = quota_names(config)
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
                return f"quota {quota.name} allows no {name} in this namespace"
            if more is not None and (held + more > hard and more > 0):
                return f"quota {quota.name} allows {hard} of {name}; {held} are used and {requester} requests {more}"
    return ""


def _peak(request: PodRequest, amount: Callable[[ContainerRequest], int]) -> int:
    peak = sum(amount(container) for container in request.containers if container.sidecar or not container.init)
    sidecars = 0
    for container in request.containers:
        if container.sidecar:
            sidecars += amount(container)
        elif container.init:
            peak = max(peak, sidecars + amount(container))
    return peak
