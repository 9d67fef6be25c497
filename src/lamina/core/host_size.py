"""CPU and memory of hosts: what a node offers to pods, and what a pod takes of it, counted as Kubernetes counts."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from lamina.core.grants import MAX_CONTAINERS
from lamina.core.quantities import parse_quantity
from lamina.errors import BadInput

_MIB = 1 << 20
_MAX_AMOUNT = 2**53
"""No amount is larger: arrays of integers hold it, and doubles hold it exactly."""


class HostSize(NamedTuple):
    """CPU in thousandths of a core, memory in MiB."""

    cpu: int = 0
    memory_mib: int = 0

    def clamped(self) -> "HostSize":
        """The size with amounts from -2**53 to 2**53. The API server accepts any, such as 9E of CPU."""
        return HostSize(*(max(-_MAX_AMOUNT, min(amount, _MAX_AMOUNT)) for amount in self))


UNKNOWN_HOST = HostSize(128_000, 1_024_000)
"""What is assumed of a node that has not been observed."""


def offered_by(node: Mapping[str, Any]) -> HostSize:
    """What a node lets pods have."""
    return HostSize(offered_of(node, "cpu"), offered_of(node, "memory") // _MIB).clamped()


def asked_by(pod: Mapping[str, Any]) -> HostSize:
    """The CPU and memory that a pod takes of its node."""
    spec = pod.get("spec") or {}
    return HostSize(asked_of(spec, "cpu"), -(-asked_of(spec, "memory") // _MIB)).clamped()


def asked_of(spec: Mapping[str, Any], resource: str) -> int:
    """What a pod takes of one resource of its node, in thousandths of CPU or in whole units, each amount rounded up.

    It is what runs together, or what starts before it where that is more, and the overhead. Init containers that keep
    running count with the containers, and with each init container after them. What is asked for the pod as a whole
    takes the place of what its containers ask. Of more containers than a pod with GPUs may have, the first ones count.
    """
    times = _parts(resource)

    def of(container: Mapping[str, Any]) -> int:
        return _requested(container.get("resources") or {}, resource, times) or 0

    together = _requested(spec.get("resources") or {}, resource, times)
    if together is None:
        together = _together(spec, of)
    return together + _amount((spec.get("overhead") or {}).get(resource), times)


def offered_of(node: Mapping[str, Any], resource: str) -> int:
    """What a node lets pods have of one resource, in the same units."""
    status = node.get("status") or {}
    return _amount((status.get("allocatable") or status.get("capacity") or {}).get(resource), _parts(resource))


def _parts(resource: str) -> int:
    return 1000 if resource == "cpu" else 1


def _together(spec: Mapping[str, Any], of: Callable[[Mapping[str, Any]], int]) -> int:
    sidecars = peak = 0
    inits: Iterable[Mapping[str, Any]] = spec.get("initContainers") or ()
    for container in islice(inits, MAX_CONTAINERS):
        asked = of(container)
        peak = max(peak, sidecars + asked)
        if container.get("restartPolicy") == "Always":
            sidecars += asked
    containers: Iterable[Mapping[str, Any]] = spec.get("containers") or ()
    return max(peak, sidecars + sum(of(container) for container in islice(containers, MAX_CONTAINERS)))


def _requested(resources: Mapping[str, Any], name: str, times: int) -> int | None:
    """The request, or the limit where there is none, which the API server writes as the request too."""
    for part in ("requests", "limits"):
        if name in (resources.get(part) or {}):
            return _amount(resources[part][name], times)
    return None


@lru_cache(maxsize=4096)
def _amount(written: str | int | float | None, times: int) -> int:
    """A quantity in parts of 1/times, rounded up; what is no quantity is 0, since the API server refuses it."""
    if written is None:
        return 0
    try:
        return ceil(parse_quantity(written, where="a quantity").value * times)
    except BadInput:
        return 0
