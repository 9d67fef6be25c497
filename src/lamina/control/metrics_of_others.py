"""What is granted, under the names of HAMi's and of Volcano's scheduler, for the dashboards that were made for them.

Names, labels and units are theirs: HAMi's ratios of compute go from 0 to 100 and its ratio of memory to 1, Volcano
counts memory in MiB. `container_index` counts the containers that have GPUs. docs/metrics.md lists the rows below.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from prometheus_client.core import GaugeMetricFamily

from lamina.control.ledger import Ledger
from lamina.model.gpus import Gpu
from lamina.model.grants import Share
from lamina.model.ledger import NOTHING, Taken
from lamina.model.quantities import MIB


class OnGpu(NamedTuple):
    """One GPU, and what is taken of it."""

    node: str
    gpu: Gpu
    taken: Taken


class OfPod(NamedTuple):
    """One container's share."""

    namespace: str
    pod: str
    node: str
    container: int
    share: Share


class OfGpu(NamedTuple):
    """A family with a value for each GPU. Its labels are `labels`, read from `key`."""

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[OnGpu], float]
    key: Callable[[OnGpu], tuple[str, ...]]


class OfShare(NamedTuple):
    """A family with a value for each share."""

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[OfPod], float]
    key: Callable[[OfPod], tuple[str, ...]]


def _hami_gpu(on: OnGpu) -> tuple[str, ...]:
    return (on.node, on.gpu.uuid, str(on.gpu.index), _kind(on.gpu))


def _hami_cores(on: OnGpu) -> tuple[str, ...]:
    return (on.node, on.gpu.uuid, str(on.gpu.index), str(on.gpu.cores_capacity), _kind(on.gpu))


def _hami_overview(on: OnGpu) -> tuple[str, ...]:
    node, uuid, index, cores, kind = _hami_cores(on)
    return (node, uuid, index, cores, str(on.gpu.capacity_mib), kind)


def _hami_share(of: OfPod) -> tuple[str, ...]:
    return (of.namespace, of.node, of.pod, str(of.container), of.share.gpu)


def _volcano_gpu(on: OnGpu) -> tuple[str, ...]:
    return (on.gpu.uuid, on.node)


def _volcano_share(of: OfPod) -> tuple[str, ...]:
    return (of.share.gpu, of.node, of.pod)


def _kind(gpu: Gpu) -> str:
    """HAMi's type of a GPU: the model, with the maker in front."""
    return gpu.model if gpu.model.startswith("NVIDIA") else f"NVIDIA-{gpu.model}"


_GPU = ("node", "device_uuid", "device_index", "device_type")
_CORES = ("node", "device_uuid", "device_index", "device_cores", "device_type")
_OVERVIEW = ("node", "device_uuid", "device_index", "device_cores", "device_memory_limit", "device_type")
_SHARE = ("namespace", "node", "pod", "container_index", "device_uuid")
_VOLCANO, _VOLCANO_POD = ("devID", "NodeName"), ("devID", "NodeName", "podName")

GPUS: dict[Literal["hami", "volcano"], tuple[OfGpu, ...]] = {
    "hami": (
        OfGpu("hami_gpu_memory_limit_bytes", "Memory that may be granted of a GPU.", _GPU,
              lambda on: on.gpu.capacity_mib * MIB, _hami_gpu),
        OfGpu("hami_gpu_core_limit_ratio", "Compute of a GPU, always 100.", _GPU, lambda on: 100, _hami_gpu),
        OfGpu("hami_gpu_shared_count", "Containers on a GPU.", _GPU, lambda on: on.taken.slots, _hami_gpu),
        OfGpu("hami_gpu_core_allocated_ratio", "Compute granted, 0 to 100.", _GPU,
              lambda on: 100 * on.taken.cores / on.gpu.cores_capacity, _hami_gpu),
        OfGpu("hami_gpu_memory_allocated_bytes", "Memory granted.", _CORES,
              lambda on: on.taken.memory_mib * MIB, _hami_cores),
        OfGpu("hami_node_gpu_overview", "Memory granted, in bytes.", _OVERVIEW,
              lambda on: on.taken.memory_mib * MIB, _hami_overview),
        OfGpu("hami_node_gpu_memory_allocated_ratio", "Memory granted, 0 to 1.", _GPU[:3],
              lambda on: on.taken.memory_mib / on.gpu.capacity_mib, lambda on: _hami_gpu(on)[:3]),
    ),
    "volcano": (
        OfGpu("volcano_vgpu_device_shared_number", "Containers on a GPU.", _VOLCANO,
              lambda on: on.taken.slots, _volcano_gpu),
        OfGpu("volcano_vgpu_device_allocated_memory", "Memory granted, in MiB.", _VOLCANO,
              lambda on: on.taken.memory_mib, _volcano_gpu),
        OfGpu("volcano_vgpu_device_allocated_cores", "Compute granted, in percent.", _VOLCANO,
              lambda on: on.taken.cores, _volcano_gpu),
        OfGpu("volcano_vgpu_device_memory_limit", "Memory that may be granted, in MiB.", _VOLCANO,
              lambda on: on.gpu.capacity_mib, _volcano_gpu),
    ),
}  # fmt: skip

SHARES: dict[Literal["hami", "volcano"], tuple[OfShare, ...]] = {
    "hami": (
        OfShare("hami_vgpu_memory_allocated_bytes", "Memory granted to a container.", _SHARE,
                lambda of: of.share.memory_mib * MIB, _hami_share),
        OfShare("hami_vgpu_core_allocated_ratio", "Compute granted to a container, 0 to 100.", _SHARE,
                lambda of: of.share.cores, _hami_share),
    ),
    "volcano": (
        OfShare("volcano_vgpu_device_memory_allocation_for_a_certain_pod", "Memory granted to a pod, in MiB.",
                _VOLCANO_POD, lambda of: of.share.memory_mib, _volcano_share),
        OfShare("volcano_vgpu_device_core_allocation_for_a_certain_pod", "Compute granted to a pod, in percent.",
                _VOLCANO_POD, lambda of: of.share.cores, _volcano_share),
    ),
}  # fmt: skip


def families(ledger: Ledger, named: Iterable[str]) -> Iterator[GaugeMetricFamily]:
    """The families of the vocabularies `named`, from the ledger as it is now."""
    gpus, shares = list(_gpus(ledger)), list(_shares(ledger))
    for vocabulary in GPUS.keys() & set(named):
        for of_gpu in GPUS[vocabulary]:
            yield _filled(of_gpu, ((of_gpu.key(on), of_gpu.read(on)) for on in gpus))
        for of_share in SHARES[vocabulary]:
            yield _filled(of_share, ((of_share.key(of), of_share.read(of)) for of in shares))


def _filled(family: OfGpu | OfShare, rows: Iterable[tuple[tuple[str, ...], float]]) -> GaugeMetricFamily:
    """Values with the same labels, such as those of a pod's containers on one GPU for Volcano, are one sum."""
    sums: dict[tuple[str, ...], float] = {}
    for key, value in rows:
        sums[key] = sums.get(key, 0) + value
    filled = GaugeMetricFamily(family.name, family.text, labels=family.labels)
    for key, value in sums.items():
        filled.add_metric(key, value)
    return filled


def _gpus(ledger: Ledger) -> Iterator[OnGpu]:
    for node in sorted(ledger.nodes()):
        inventory, taken = ledger.inventory(node), ledger.taken(node)
        for gpu in inventory.gpus if inventory else ():
            yield OnGpu(node, gpu, taken.get(gpu.uuid, NOTHING))


def _shares(ledger: Ledger) -> Iterator[OfPod]:
    for record in ledger.records():
        grant = record.grant
        for number, container in enumerate(grant.containers):
            for share in container.shares:
                yield OfPod(record.namespace, grant.pod, grant.node, number, share)
