"""The metrics of NVIDIA's DCGM exporter. Names, labels and units are DCGM's, which counts memory in MiB."""

from lamina.core.quantities import MIB
from lamina.dialects.metrics import MetricTable, NodeMetrics, gauge
from lamina.dialects.samples import GpuSample


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB


NODE = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"),
            lambda s: (str(s.index), s.uuid, s.reading.bus_id, f"nvidia{s.index}", s.model, s.node, s.driver),
            (
                gauge("DCGM_FI_DEV_XID_ERRORS", "The last error (XID) that the driver reported; 0 if none.",
                      lambda s: s.xid),
                gauge("DCGM_FI_DEV_GPU_UTIL", "Share of recent time in which a kernel ran, in percent.",
                      lambda s: s.reading.busy_percent),
                gauge("DCGM_FI_DEV_MEM_COPY_UTIL",
                      "Share of recent time in which memory was read or written, in percent.",
                      lambda s: s.reading.memory_busy_percent),
                gauge("DCGM_FI_DEV_FB_USED", "Memory in use, in MiB.", lambda s: _mib(s.reading.used_bytes)),
                gauge("DCGM_FI_DEV_FB_FREE", "Free memory, in MiB.", lambda s: _mib(s.reading.free_bytes)),
                gauge("DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU, in degrees Celsius.",
                      lambda s: s.reading.temperature_c),
                gauge("DCGM_FI_DEV_POWER_USAGE", "Power that the GPU draws, in watts.", lambda s: s.reading.power_w),
            ),
        ),
    ),
)  # fmt: skip
