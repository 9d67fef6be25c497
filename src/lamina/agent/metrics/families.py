"""The series of a node: our own, those of HAMi's monitor, of the DCGM exporter and of CCE's plugin.

Each family is one row: its name, what it means, its labels, and how its values follow from a sample. docs/metrics.md
lists the same rows, which a test compares. Names, labels and units of others are theirs: HAMi's ratios go from 0 to
100, and DCGM counts memory in MiB.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from lamina.agent.metrics.samples import GpuSample, PartSample, ShareSample
from lamina.model.quantities import MIB

S = TypeVar("S")
Vocabulary = Literal["lamina", "hami", "dcgm", "cce"]
_Values = Iterable[tuple[tuple[str, ...], float | None]]


class Family(NamedTuple, Generic[S]):
    """`read` gives values with the labels of `more`, which follow the labels that all families of a table have."""

    vocabulary: Vocabulary
    name: str
    text: str
    read: Callable[[S], _Values]
    more: tuple[str, ...] = ()
    counter: bool = False


def _one(value: float | None) -> _Values:
    return (((), value),)


GPU: tuple[Family[GpuSample], ...] = (
    Family("lamina", "lamina_gpu_memory_bytes", "Memory of the GPU.",
           lambda s: _one((s.state.facts.memory_mib or 0) * MIB)),
    Family("lamina", "lamina_gpu_memory_used_bytes", "Memory in use, by whomsoever.",
           lambda s: _one(s.reading.used_bytes)),
    Family("lamina", "lamina_gpu_utilization_percent", "Part of the last moments in which a kernel ran.",
           lambda s: _one(s.reading.busy_percent)),
    Family("lamina", "lamina_gpu_healthy", "1 where containers may use the GPU, else 0 with the reason.",
           lambda s: (((s.state.reason,), float(s.state.healthy)),), ("reason",)),
    Family("lamina", "lamina_mps_ready", "1 where the GPU's MPS daemon serves, else 0, with its state.",
           lambda s: (((s.mps.state.value,), float(s.mps.ready)),) if s.mps else (), ("state",)),
    Family("dcgm", "DCGM_FI_DEV_XID_ERRORS", "The last error (XID) that the driver reported; 0 is none.",
           lambda s: _one(s.state.xid)),
    Family("hami", "hami_host_gpu_memory_used_bytes", "Memory in use, by whomsoever.",
           lambda s: _one(s.reading.used_bytes)),
    Family("hami", "hami_host_gpu_utilization_ratio", "Part of the last moments in which a kernel ran, 0 to 100.",
           lambda s: _one(s.reading.busy_percent)),
    Family("hami", "hami_host_gpu_memory_controller_utilization_ratio",
           "Part of the last moments in which memory was read or written, 0 to 100.",
           lambda s: _one(s.reading.memory_busy_percent)),
    Family("hami", "hami_host_gpu_temperature_celsius", "Temperature of the GPU.",
           lambda s: _one(s.reading.temperature_c)),
    Family("hami", "hami_host_gpu_power_usage_watts", "Power that the GPU draws.",
           lambda s: _one(s.reading.power_w)),
    Family("dcgm", "DCGM_FI_DEV_GPU_UTIL", "Part of the last moments in which a kernel ran, in percent.",
           lambda s: _one(s.reading.busy_percent)),
    Family("dcgm", "DCGM_FI_DEV_MEM_COPY_UTIL", "Part of the last moments in which memory was read or written.",
           lambda s: _one(s.reading.memory_busy_percent)),
    Family("dcgm", "DCGM_FI_DEV_FB_USED", "Memory in use, in MiB.",
           lambda s: _one(_mib(s.reading.used_bytes))),
    Family("dcgm", "DCGM_FI_DEV_FB_FREE", "Free memory, in MiB.",
           lambda s: _one(_mib(s.reading.free_bytes))),
    Family("dcgm", "DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU, in degrees Celsius.",
           lambda s: _one(s.reading.temperature_c)),
    Family("dcgm", "DCGM_FI_DEV_POWER_USAGE", "Power that the GPU draws, in watts.",
           lambda s: _one(s.reading.power_w)),
    Family("cce", "cce_gpu_utilization", "Part of the last moments in which a kernel ran, in percent.",
           lambda s: _one(s.reading.busy_percent)),
    Family("cce", "cce_gpu_memory_utilization", "Part of the memory in use, in percent.",
           lambda s: _one(_percent(s.reading.used_bytes, s.reading.free_bytes))),
    Family("cce", "cce_gpu_memory_used", "Memory in use, in bytes.", lambda s: _one(s.reading.used_bytes)),
    Family("cce", "cce_gpu_memory_free", "Free memory, in bytes.", lambda s: _one(s.reading.free_bytes)),
    Family("cce", "cce_gpu_memory_total", "Memory of the GPU, in bytes.",
           lambda s: _one((s.state.facts.memory_mib or 0) * MIB)),
    Family("cce", "cce_gpu_temperature", "Temperature of the GPU, in degrees Celsius.",
           lambda s: _one(s.reading.temperature_c)),
    Family("cce", "cce_gpu_power_usage", "Power that the GPU draws, in milliwatts.",
           lambda s: _one(None if s.reading.power_w is None else s.reading.power_w * 1000)),
    Family("cce", "gpu_schedule_policy", "0 where shares divide memory, 1 memory and compute, 2 where there are none.",
           lambda s: _one(s.policy)),
    Family("cce", "xgpu_device_health", "0 where containers may use the GPU, else 1.",
           lambda s: _one(float(not s.state.healthy))),
)  # fmt: skip

PARTS: tuple[Family[PartSample], ...] = (
    Family("lamina", "lamina_mig_memory_bytes", "Memory of the MIG device.",
           lambda s: _one(_total(s.reading.used_bytes, s.reading.free_bytes))),
    Family("lamina", "lamina_mig_memory_used_bytes", "Memory of it in use, by whomsoever.",
           lambda s: _one(s.reading.used_bytes)),
    Family("lamina", "lamina_mig_healthy", "1 where containers may use it, else 0 with the reason.",
           lambda s: (((s.gpu.reason,), float(s.gpu.healthy)),), ("reason",)),
    Family("hami", "hami_node_gpu_mig_instance_info", "Always 1: a MIG device, and where it lies on its GPU.",
           lambda s: _one(1)),
)  # fmt: skip

SHARES: tuple[Family[ShareSample], ...] = (
    Family("lamina", "lamina_container_memory_limit_bytes", "Memory that the container may use of the GPU.",
           lambda s: _one(s.limit)),
    Family("lamina", "lamina_container_memory_used_bytes", "Memory that the container uses, by kind of allocation.",
           lambda s: (((kind,), size) for kind, size in s.held.items()), ("kind",)),
    Family("lamina", "lamina_container_memory_spilled_bytes", "Of it, what became managed memory for lack of room.",
           lambda s: _one(s.spilled)),
    Family("lamina", "lamina_container_memory_peak_bytes", "The most that it ever used.", lambda s: _one(s.peak)),
    Family("lamina", "lamina_container_memory_refusals", "Requests refused because they exceeded the limit.",
           lambda s: _one(s.refusals), counter=True),
    Family("lamina", "lamina_container_cores_percent", "Its share of the GPU's time; 0 where none was asked for.",
           lambda s: _one(s.cores_percent)),
    Family("lamina", "lamina_container_busy_seconds", "GPU time that it got.", lambda s: _one(s.busy_s), counter=True),
    Family("lamina", "lamina_container_waited_seconds", "Time for which its threads waited for their share.",
           lambda s: _one(s.waited_s), counter=True),
    Family("lamina", "lamina_container_utilization_percent", "GPU time that it got over the last seconds.",
           lambda s: _one(s.busy_percent)),
    Family("lamina", "lamina_container_enforcer", "Who holds its memory.",
           lambda s: (((s.enforcer,), 1.0),), ("enforcer",)),
    Family("hami", "hami_vgpu_memory_used_bytes", "Memory that the container uses.", lambda s: _one(s.used)),
    Family("hami", "hami_vgpu_memory_limit_bytes", "Memory that it may use.", lambda s: _one(s.limit)),
    Family("hami", "hami_container_device_memory_bytes", "Memory that it uses.", lambda s: _one(s.used)),
    Family("hami", "hami_container_device_utilization_ratio", "GPU time over the last seconds, 0 to 100.",
           lambda s: _one(s.busy_percent)),
    Family("hami", "hami_vgpu_memory_context_bytes", "Of the memory, contexts.",
           lambda s: _one(s.held.get("context", 0))),
    Family("hami", "hami_vgpu_memory_module_bytes", "Of the memory, modules.", lambda s: _one(s.held.get("module", 0))),
    Family("hami", "hami_vgpu_memory_buffer_bytes", "Of the memory, all else.",
           lambda s: _one(_buffers(s))),
    Family("hami", "hami_mig_device_info", "Always 1: which MIG device the container has.",
           lambda s: (((s.part.instance.uuid, s.part.instance.profile, str(s.part.instance.id), "0"), 1.0),)
           if s.part else (), ("mig_uuid", "profile", "gpu_instance_id", "compute_instance_id")),
    Family("cce", "xgpu_memory_total", "Memory that the container may use, in bytes.", lambda s: _one(s.limit)),
    Family("cce", "xgpu_memory_used", "Memory that it uses, in bytes.", lambda s: _one(s.used)),
    Family("cce", "xgpu_core_percentage_total", "Its share of the GPU's time; 0 where none was asked for.",
           lambda s: _one(s.cores_percent)),
    Family("cce", "xgpu_core_percentage_used", "GPU time that it got over the last seconds, in percent.",
           lambda s: _one(s.busy_percent)),
    Family("cce", "gpu_pod_memory_total", "The same as xgpu_memory_total.", lambda s: _one(s.limit)),
    Family("cce", "gpu_pod_memory_used", "The same as xgpu_memory_used.", lambda s: _one(s.used)),
    Family("cce", "gpu_pod_core_percentage_total", "The same as xgpu_core_percentage_total.",
           lambda s: _one(s.cores_percent)),
    Family("cce", "gpu_pod_core_percentage_used", "The same as xgpu_core_percentage_used.",
           lambda s: _one(s.busy_percent)),
)  # fmt: skip

_GPU_LABELS: dict[Vocabulary, tuple[str, ...]] = {
    "lamina": ("node", "gpu", "index", "model"),
    "hami": ("node", "device_index", "device_uuid", "device_type"),
    "dcgm": ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"),
    "cce": ("node", "gpu_index", "gpu_id", "gpu_type"),
}
_PART_LABELS: dict[Vocabulary, tuple[str, ...]] = {
    "lamina": ("node", "gpu", "index", "mig", "profile", "instance"),
    "hami": (
        "node", "device_uuid", "device_index", "mig_uuid", "profile", "gpu_instance_id", "compute_instance_id",
        "placement_start", "placement_size",
    ),
}  # fmt: skip
_SHARE_LABELS: dict[Vocabulary, tuple[str, ...]] = {
    "lamina": ("node", "namespace", "pod", "container", "gpu"),
    "hami": ("namespace", "pod", "container", "vdevice_index", "device_uuid"),
    "cce": ("node", "namespace", "pod", "container", "gpu_id"),
}


def labels(family: Family[Any]) -> tuple[str, ...]:
    """All labels of a family, in order."""
    for table, first in ((GPU, _GPU_LABELS), (PARTS, _PART_LABELS), (SHARES, _SHARE_LABELS)):
        if any(family is each for each in table):
            return first[family.vocabulary] + family.more
    raise KeyError(family.name)


def families(
    node: str,
    driver: str,
    gpus: Iterable[GpuSample],
    parts: Iterable[PartSample],
    shares: Iterable[ShareSample],
    named: Iterable[str],
) -> Iterator[Metric]:
    """All families of our own and of the vocabularies `named`. What a GPU does not tell is left out."""
    wanted = {"lamina", *named}
    gpu_rows = [(sample, _of_gpu(sample, node, driver)) for sample in gpus]
    part_rows = [(sample, _of_part(sample, node)) for sample in parts]
    share_rows = [(sample, _of_share(sample, node)) for sample in shares]
    for of_gpu in GPU:
        if of_gpu.vocabulary in wanted:
            yield _filled(of_gpu, gpu_rows)
    for of_part in PARTS:
        if of_part.vocabulary in wanted:
            yield _filled(of_part, part_rows)
    for of_share in SHARES:
        if of_share.vocabulary in wanted:
            yield _filled(of_share, share_rows)


def _filled(family: Family[S], rows: Iterable[tuple[S, dict[str, tuple[str, ...]]]]) -> Metric:
    kind = CounterMetricFamily if family.counter else GaugeMetricFamily
    filled = kind(family.name, family.text, labels=labels(family))
    for sample, first in rows:
        for more, value in family.read(sample):
            if value is not None:
                filled.add_metric([*first[family.vocabulary], *more], value)
    return filled


def _of_gpu(sample: GpuSample, node: str, driver: str) -> dict[str, tuple[str, ...]]:
    facts = sample.state.facts
    index, bus = str(facts.index), sample.reading.bus_id
    kind = f"NVIDIA-{facts.name}"
    return {
        "lamina": (node, facts.uuid, index, facts.name),
        "hami": (node, index, facts.uuid, kind),
        "dcgm": (index, facts.uuid, bus, f"nvidia{index}", facts.name, node, driver),
        "cce": (node, index, facts.uuid, facts.name),
    }


def _of_part(sample: PartSample, node: str) -> dict[str, tuple[str, ...]]:
    facts, instance = sample.gpu.facts, sample.instance
    index, ident, start = str(facts.index), str(instance.id), str(instance.start)
    return {
        "lamina": (node, facts.uuid, index, instance.uuid, instance.profile, ident),
        "hami": (node, facts.uuid, index, instance.uuid, instance.profile, ident, "0", start, sample.size),
    }


def _of_share(sample: ShareSample, node: str) -> dict[str, tuple[str, ...]]:
    names = (sample.namespace, sample.pod, sample.container)
    whole = sample.gpu if sample.part is None else sample.part.gpu.facts.uuid
    return {
        "lamina": (node, *names, sample.gpu),
        "hami": (*names, str(sample.place), whole),
        "cce": (node, *names, sample.gpu),
    }


def _buffers(sample: ShareSample) -> int | None:
    """What is neither contexts nor modules."""
    used = sample.used
    return None if used is None else used - sample.held.get("context", 0) - sample.held.get("module", 0)


def _total(used: int | None, free: int | None) -> int | None:
    return None if used is None or free is None else used + free


def _percent(used: int | None, free: int | None) -> float | None:
    total = _total(used, free)
    return 100 * (used or 0) / total if total else None


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB
