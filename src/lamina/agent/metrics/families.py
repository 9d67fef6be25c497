"""The series of a node: our own, those of HAMi's monitor, and those of the DCGM exporter.

Each family is one row: its name, what it means, its labels, and how its values follow from a sample. docs/metrics.md
lists the same rows, which a test compares. Names, labels and units of others are theirs: HAMi's ratios go from 0 to
100, and DCGM counts memory in MiB.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Literal, NamedTuple, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from lamina.agent.metrics.samples import GpuSample, ShareSample
from lamina.model.quantities import MIB

S = TypeVar("S")
Vocabulary = Literal["lamina", "hami", "dcgm"]
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
    Family("lamina", "lamina_container_enforcer", "Who holds its memory: facade, driver beside it, whole, or mig.",
           lambda s: (((s.enforcer,), 1.0),), ("enforcer",)),
    Family("hami", "hami_vgpu_memory_used_bytes", "Memory that the container uses.", lambda s: _one(s.used)),
    Family("hami", "hami_vgpu_memory_limit_bytes", "Memory that it may use.", lambda s: _one(s.limit)),
    Family("hami", "hami_container_device_memory_bytes", "Memory that it uses.", lambda s: _one(s.used)),
    Family("hami", "hami_container_device_utilization_ratio", "GPU time over the last seconds, 0 to 100.",
           lambda s: _one(s.busy_percent)),
    Family("hami", "hami_mig_device_info", "1 for a MIG device of the container; device_uuid is the GPU that it is of.",
           lambda s: (((s.part.instance.uuid, s.part.instance.profile, str(s.part.instance.id), "0"), 1.0),)
           if s.part else (),
           ("mig_uuid", "profile", "gpu_instance_id", "compute_instance_id")),
    Family("hami", "hami_vgpu_memory_context_bytes", "Of the memory, contexts.",
           lambda s: _one(s.held.get("context", 0))),
    Family("hami", "hami_vgpu_memory_module_bytes", "Of the memory, modules.", lambda s: _one(s.held.get("module", 0))),
    Family("hami", "hami_vgpu_memory_buffer_bytes", "Of the memory, all else.",
           lambda s: _one(s.used - s.held.get("context", 0) - s.held.get("module", 0))),
)  # fmt: skip


def labels(family: Family[GpuSample] | Family[ShareSample]) -> tuple[str, ...]:
    """All labels of a family, in order."""
    if any(family is each for each in GPU):
        first: tuple[str, ...] = {
            "lamina": ("node", "gpu", "index", "model"),
            "hami": ("node", "device_index", "device_uuid", "device_type"),
            "dcgm": ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"),
        }[family.vocabulary]
    elif family.vocabulary == "lamina":
        first = ("node", "namespace", "pod", "container", "gpu")
    else:
        first = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
    return first + family.more


def families(
    node: str, driver: str, gpus: Iterable[GpuSample], shares: Iterable[ShareSample], named: Iterable[str]
) -> Iterator[Metric]:
    """All families of our own and of the vocabularies `named`. What a GPU does not tell is left out."""
    wanted = {"lamina", *named}
    gpu_rows = [(sample, _of_gpu(sample, node, driver)) for sample in gpus]
    share_rows = [(sample, _of_share(sample, node)) for sample in shares]
    for of_gpu in GPU:
        if of_gpu.vocabulary in wanted:
            yield _filled(of_gpu, gpu_rows)
    for of_share in SHARES:
        if of_share.vocabulary in wanted:
            yield _filled(of_share, share_rows)


def _filled(family: Family[S], rows: Iterable[tuple[S, dict[str, tuple[str, ...]]]]) -> Metric:
    kind = CounterMetricFamily if family.counter else GaugeMetricFamily
    filled: Metric = kind(family.name, family.text, labels=labels(family))  # type: ignore[arg-type]
    for sample, first in rows:
        for more, value in family.read(sample):
            if value is not None:
                filled.add_metric([*first[family.vocabulary], *more], value)  # type: ignore[attr-defined]
    return filled


def _of_gpu(sample: GpuSample, node: str, driver: str) -> dict[str, tuple[str, ...]]:
    facts = sample.state.facts
    index, bus = str(facts.index), sample.reading.bus_id
    kind = f"NVIDIA-{facts.name}"
    return {
        "lamina": (node, facts.uuid, index, facts.name),
        "hami": (node, index, facts.uuid, kind),
        "dcgm": (index, facts.uuid, bus, f"nvidia{index}", facts.name, node, driver),
    }


def _of_share(sample: ShareSample, node: str) -> dict[str, tuple[str, ...]]:
    of = sample.part
    return {
        "lamina": (node, sample.namespace, sample.pod, sample.container, sample.gpu),
        "hami": (sample.namespace, sample.pod, sample.container, str(sample.place), of.gpu if of else sample.gpu),
    }


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB
