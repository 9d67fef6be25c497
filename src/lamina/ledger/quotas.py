"""Quotas of a namespace on GPU memory and compute, written into a ResourceQuota as for HAMi.

    spec: {hard: {limits.nvidia.com/gpumem: 20000, limits.nvidia.com/gpucores: 200}}

Kubernetes stores such keys but does not count them, so Lamina does. Amounts are per GPU times GPUs; a pod needs the
larger of its largest init container and everything that runs side by side, on each GPU. What quotas leave is part of a
request (`PodRequest.within`), so that filter, choice, binding and every view ask the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from lamina.configuration import Config
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import ContainerRequest, PodRequest
from lamina.dialects import quota_names
from lamina.dialects.quota_limits import QuotaLimits, quota_limits
from lamina.ports.kube import Object


class ResourceQuotas:
    """The observed ResourceQuota objects of all namespaces."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Object]] = {}
        self._changed: set[str] = set()

    def observe(self, obj: Object) -> None:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        quotas = self._by_namespace.setdefault(namespace, {})
        before, quotas[name] = quotas.get(name), obj
        if before is not None and before.get("spec") != obj.get("spec"):
            self._changed.add(namespace)

    def remove(self, obj: Object) -> None:
        metadata = obj["metadata"]
        self._by_namespace.get(metadata["namespace"], {}).pop(metadata["name"], None)
        self._changed.add(metadata["namespace"])

    def take_changed(self) -> Set[str]:
        """The namespaces whose quotas may allow more than at the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def objects(self) -> Iterator[tuple[str, Object]]:
        """All quotas, each with its namespace."""
        for namespace, quotas in list(self._by_namespace.items()):
            yield from ((namespace, quota) for quota in list(quotas.values()))

    def of(self, namespace: str, config: Config) -> list[QuotaLimits]:
        """The quotas of the namespace that limit GPU resources."""
        quotas = (quota_limits(obj, config) for obj in self._by_namespace.get(namespace, {}).values())
        return [quota for quota in quotas if quota.memory_mib is not None or quota.cores is not None]

    def room(self, namespace: str, config: Config, used: Callable[[], Taken]) -> QuotaRoom | None:
        """What its quotas leave to a pod of the namespace, where other pods and claims there hold `used`."""
        quotas = self.of(namespace, config)
        if not quotas:
            return None
        names, taken = quota_names(config), used()
        return QuotaRoom(
            memory=_tightest(((each.name, each.memory_mib) for each in quotas), names.memory, taken.memory_mib),
            cores=_tightest(((each.name, each.cores) for each in quotas), names.cores, taken.cores),
        )

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


def excess(requests: Sequence[PodRequest], *, requester: str = "the pod") -> str:
    """Which quota these pods of a namespace exceed together before GPUs are chosen, as a sentence, or nothing.

    A percentage counts once its GPU is chosen: until then, it only needs a quota that is not zero.
    """
    room = requests[0].room if requests else None
    if room is None:
        return ""
    percentages = any(each.memory_mib is None for request in requests for each in request.containers)
    if percentages and room.memory is not None and room.memory.hard == 0:
        return f"quota {room.memory.quota} allows no {room.memory.resource} in this namespace"
    memory = sum(_peak(each, lambda container: container.count * (container.memory_mib or 0)) for each in requests)
    cores = sum(_peak(each, lambda container: container.count * container.cores) for each in requests)
    return room.excess(memory, cores, requester)


def _tightest(quotas: Iterable[tuple[str, int | None]], resource: str, used: int) -> QuotaLimit | None:
    limits = [QuotaLimit(quota, resource, hard, used) for quota, hard in quotas if hard is not None]
    return min(limits, key=lambda limit: limit.hard, default=None)


def _peak(request: PodRequest, amount: Callable[[ContainerRequest], int]) -> int:
    peak = sum(amount(container) for container in request.containers if container.sidecar or not container.init)
    sidecars = 0
    for container in request.containers:
        if container.sidecar:
            sidecars += amount(container)
        elif container.init:
            peak = max(peak, sidecars + amount(container))
    return peak


def usage(quota: Object, taken: Taken, config: Config) -> dict[str, tuple[int, str]]:
    """By key of the quota that Lamina counts: the used amount, and the limit as it is written."""
    names = quota_names(config)
    used = {
        f"limits.{names.memory}": -(-taken.memory_mib // names.memory_unit_mib),
        f"limits.{names.cores}": taken.cores,
    }
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {key: (amount, str(hard[key])) for key, amount in used.items() if key in hard}
