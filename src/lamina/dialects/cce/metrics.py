"""The metrics of CCE's plugin. CCE's documents name no labels for them, so the labels are Lamina's."""

from lamina.dialects.metrics import MetricTable, NodeMetrics, gauge
from lamina.dialects.samples import GpuSample, ShareSample

_BY_MEMORY, _BY_MEMORY_AND_COMPUTE, _NOT_SHARED = range(3)


def _schedule_policy(sample: GpuSample) -> int:
    """How containers share the GPU."""
    limited = [share for share in sample.shares if share.enforcer in ("facade", "driver")]
    if not limited:
        return _NOT_SHARED
    return _BY_MEMORY_AND_COMPUTE if any(share.cores_percent for share in limited) else _BY_MEMORY


def _memory_utilization(sample: GpuSample) -> float | None:
    total, used = sample.reading.total_bytes, sample.reading.used_bytes
    return 100 * used / total if total and used is not None else None


def _milliwatts(sample: GpuSample) -> float | None:
    return None if sample.reading.power_w is None else sample.reading.power_w * 1000


NODE = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("node", "gpu_index", "gpu_id", "gpu_type"),
            lambda s: (s.node, str(s.index), s.uuid, s.model),
            (
                gauge("cce_gpu_utilization", "Share of recent time in which a kernel ran, in percent.",
                      lambda s: s.reading.busy_percent),
                gauge("cce_gpu_memory_utilization", "Share of the memory in use, in percent.", _memory_utilization),
                gauge("cce_gpu_memory_used", "Memory in use, in bytes.", lambda s: s.reading.used_bytes),
                gauge("cce_gpu_memory_free", "Free memory, in bytes.", lambda s: s.reading.free_bytes),
                gauge("cce_gpu_memory_total", "Memory of the GPU, in bytes.", lambda s: s.memory_bytes or None),
                gauge("cce_gpu_temperature", "Temperature of the GPU, in degrees Celsius.",
                      lambda s: s.reading.temperature_c),
                gauge("cce_gpu_power_usage", "Power that the GPU draws, in milliwatts.", _milliwatts),
                gauge("gpu_schedule_policy",
                      "0 if shares divide memory, 1 if memory and compute, 2 if there are no shares.",
                      _schedule_policy),
                gauge("xgpu_device_health", "0 if containers may use the GPU, else 1.",
                      lambda s: float(bool(s.reason))),
            ),
        ),
    ),
    shares=(
        MetricTable[ShareSample](
            ("node", "namespace", "pod", "container", "gpu_id"),
            lambda s: (s.node, s.namespace, s.pod, s.container, s.gpu),
            (
                gauge("xgpu_memory_total", "Memory that the container may use, in bytes.", lambda s: s.limit or None),
                gauge("xgpu_memory_used", "Memory that the container uses, in bytes.", lambda s: s.used),
                gauge("xgpu_core_percentage_total", "The container's share of the GPU's time; 0 if it requested none.",
                      lambda s: s.cores_percent),
                gauge("xgpu_core_percentage_used", "GPU time of the container over the last seconds, in percent.",
                      lambda s: s.busy_percent),
                gauge("gpu_pod_memory_total", "The same as xgpu_memory_total.", lambda s: s.limit or None),
                gauge("gpu_pod_memory_used", "The same as xgpu_memory_used.", lambda s: s.used),
                gauge("gpu_pod_core_percentage_total", "The same as xgpu_core_percentage_total.",
                      lambda s: s.cores_percent),
                gauge("gpu_pod_core_percentage_used", "The same as xgpu_core_percentage_used.",
                      lambda s: s.busy_percent),
            ),
        ),
    ),
)  # fmt: skip
