"""What a claim counts in quotas on GPU memory and compute before its node has prepared it: never less than it may get.

An allocated claim has its devices. Before that, each request counts as the largest of what it may come to: without an
amount of memory, the largest GPU of the cluster. A MIG device counts as its profile, where a selector names it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from lamina.core.gpus import Inventory
from lamina.core.quantities import MIB, parse_quantity
from lamina.dra.names import CORES, MEMORY
from lamina.errors import BadInput

_PROFILE = re.compile(
    r"""\s*device\.attributes\[["'][a-z0-9.-]+["']\]\.profile\s*==\s*["']\d+g\.(\d+)gb[^"']*["']\s*"""
)
_MIG_DEVICE = re.compile(r"gpu-\d+-mig-\d+g(\d+)gb")
_GIB = 1024
_ANY_MIB = 2**31 - 1


class ClaimAmounts(NamedTuple):
    """MiB and percent."""

    memory_mib: int = 0
    cores: int = 0

    def plus(self, other: "ClaimAmounts") -> "ClaimAmounts":
        return ClaimAmounts(self.memory_mib + other.memory_mib, self.cores + other.cores)


class ClusterGpus(NamedTuple):
    """MiB of the largest GPU, and of all GPUs of the node that has most."""

    largest_mib: int = 0
    node_mib: int = 0


def cluster_gpus(inventories: Iterable[Inventory]) -> ClusterGpus:
    """Of these nodes. While no GPU is known, it may be of any size."""
    sizes = [[gpu.memory_mib for gpu in each.gpus] for each in inventories if each.gpus]
    return ClusterGpus(max(map(max, sizes), default=_ANY_MIB), max(map(sum, sizes), default=_ANY_MIB))


def alternatives(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a request of a claim may come to."""
    return [request["exactly"]] if request.get("exactly") else list(request.get("firstAvailable") or ())


def requested_amounts(
    requests: Iterable[Mapping[str, Any]], ours: Callable[[str], bool], gpus: ClusterGpus
) -> ClaimAmounts:
    """Of a claim that is not allocated. `ours` says whether a DeviceClass selects devices of the driver."""
    total = ClaimAmounts()
    for request in requests:
        found = [
            _alternative(each, gpus) for each in alternatives(request) if ours(str(each.get("deviceClassName") or ""))
        ]
        most = ClaimAmounts(max((e.memory_mib for e in found), default=0), max((e.cores for e in found), default=0))
        total = total.plus(most)
    return total


def allocated_amounts(results: Iterable[Mapping[str, Any]], gpus: ClusterGpus) -> ClaimAmounts:
    """Of a claim with these results, which are of the driver."""
    total = ClaimAmounts()
    for result in results:
        if result.get("adminAccess"):
            continue
        consumed = result.get("consumedCapacity") or {}
        part = _MIG_DEVICE.match(str(result.get("device")))
        whole = int(part[1]) * _GIB if part else gpus.largest_mib
        total = total.plus(ClaimAmounts(_mebibytes(consumed.get(MEMORY), whole), _percent(consumed.get(CORES))))
    return total


def _alternative(request: Mapping[str, Any], gpus: ClusterGpus) -> ClaimAmounts:
    if request.get("adminAccess"):
        return ClaimAmounts()
    if request.get("allocationMode") == "All":
        return ClaimAmounts(gpus.node_mib)
    asked = (request.get("capacity") or {}).get("requests") or {}
    expressions = [(each.get("cel") or {}).get("expression") or "" for each in request.get("selectors") or ()]
    profiles = [int(found[1]) * _GIB for each in expressions if (found := _PROFILE.fullmatch(each))]
    count = int(request.get("count") or 1)
    memory = _mebibytes(asked.get(MEMORY), min(profiles, default=gpus.largest_mib))
    return ClaimAmounts(count * memory, count * _percent(asked.get(CORES)))


def _mebibytes(written: Any, otherwise: int) -> int:
    try:
        return otherwise if written is None else int(parse_quantity(written, where=MEMORY).value // MIB)
    except BadInput:
        return otherwise


def _percent(written: Any) -> int:
    try:
        return min(100, int(parse_quantity(written or 0, where=CORES).value))
    except BadInput:
        return 100
