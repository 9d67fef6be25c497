"""The dialect that is its metrics: names of OpenTelemetry's semantic conventions for hardware.

They are as its exporters write them for Prometheus: dots are underscores, the unit is at the end, and ratios are
between 0 and 1. The conventions have no names for parts of GPUs, so shares have none here.
"""

from lamina.core.config import Config
from lamina.dialects.metrics import MetricTable, NodeMetrics, gauge
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames
from lamina.dialects.samples import GpuSample

_PERCENT = 100


def _ratio(percent: int | None) -> float | None:
    return None if percent is None else percent / _PERCENT


def _used_ratio(sample: GpuSample) -> float | None:
    used, total = sample.reading.used_bytes, sample.reading.total_bytes
    return None if used is None or not total else used / total


NODE = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("hw_id", "hw_name", "hw_type", "hw_vendor", "hw_driver_version", "host_name"),
            lambda s: (s.uuid, s.model, "gpu", "NVIDIA", s.driver, s.node),
            (
                gauge("hw_gpu_memory_limit_bytes", "Memory of the GPU (hw.gpu.memory.limit).",
                      lambda s: s.memory_bytes),
                gauge("hw_gpu_memory_usage_bytes", "Memory in use (hw.gpu.memory.usage).",
                      lambda s: s.reading.used_bytes),
                gauge("hw_gpu_memory_utilization_ratio",
                      "Part of the memory that is in use (hw.gpu.memory.utilization).",
                      _used_ratio),
                gauge("hw_gpu_utilization_ratio", "Part of recent time in which a kernel ran (hw.gpu.utilization).",
                      lambda s: _ratio(s.reading.busy_percent)),
                gauge("hw_temperature_celsius", "Temperature of the GPU (hw.temperature).",
                      lambda s: s.reading.temperature_c),
                gauge("hw_power_watts", "Power that the GPU draws (hw.power).", lambda s: s.reading.power_w),
            ),
        ),
    ),
)  # fmt: skip


class OpenTelemetryDialect(Dialect):
    """No resources, only what `compatibility.metrics` chooses."""

    name = "opentelemetry"
    listed_metrics = Listed("opentelemetry", by_default=False)
    node_metrics = NODE

    def resource_names(self, config: Config) -> ResourceNames:
        return ResourceNames()

    def parse(self, pod: PodManifest, names: ResourceNames) -> None:
        return None
