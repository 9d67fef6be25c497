"""The metrics of HAMi's monitor and scheduler.

Names, labels and units are HAMi's: ratios of compute go from 0 to 100, the ratio of memory to 1.
"""

from lamina.core.quantities import MIB
from lamina.dialects.hami.compatibility import device_type
from lamina.dialects.metrics import ClusterMetrics, MetricFamily, MetricTable, NodeMetrics, Values, gauge
from lamina.dialects.samples import GpuSample, GrantedGpu, GrantedShare, MigSample, QuotaUsage, ShareSample


def _buffers(sample: ShareSample) -> int | None:
    """What is neither contexts nor modules."""
    used = sample.used
    return None if used is None else used - sample.held.get("context", 0) - sample.held.get("module", 0)


def _mig_device(sample: ShareSample) -> Values:
    if sample.mig is not None:
        yield (sample.mig.uuid, sample.mig.profile, str(sample.mig.instance_id), "0"), 1.0


_MIG_LABELS = ("mig_uuid", "profile", "gpu_instance_id", "compute_instance_id")

NODE = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("node", "device_index", "device_uuid", "device_type"),
            lambda s: (s.node, str(s.index), s.uuid, f"NVIDIA-{s.model}"),
            (
                gauge("hami_host_gpu_memory_used_bytes", "Memory in use by all processes.",
                      lambda s: s.reading.used_bytes),
                gauge("hami_host_gpu_utilization_ratio", "Share of recent time in which a kernel ran, 0 to 100.",
                      lambda s: s.reading.busy_percent),
                gauge("hami_host_gpu_memory_controller_utilization_ratio",
                      "Share of recent time in which memory was read or written, 0 to 100.",
                      lambda s: s.reading.memory_busy_percent),
                gauge("hami_host_gpu_temperature_celsius", "Temperature of the GPU.",
                      lambda s: s.reading.temperature_c),
                gauge("hami_host_gpu_power_usage_watts", "Power that the GPU draws.", lambda s: s.reading.power_w),
            ),
        ),
    ),
    mig_devices=(
        MetricTable[MigSample](
            ("node", "device_uuid", "device_index", *_MIG_LABELS, "placement_start", "placement_size"),
            lambda s: (s.node, s.gpu, str(s.index), s.uuid, s.profile, str(s.instance_id), "0", str(s.start), s.size),
            (gauge("hami_node_gpu_mig_instance_info", "Always 1: a MIG device and its placement on its GPU.",
                   lambda s: 1),),
        ),
    ),
    shares=(
        MetricTable[ShareSample](
            ("namespace", "pod", "container", "vdevice_index", "device_uuid"),
            lambda s: (s.namespace, s.pod, s.container, str(s.place), s.mig.gpu if s.mig else s.gpu),
            (
                gauge("hami_vgpu_memory_used_bytes", "Memory that the container uses.", lambda s: s.used),
                gauge("hami_vgpu_memory_limit_bytes", "Memory that the container may use.", lambda s: s.limit or None),
                gauge("hami_container_device_memory_bytes", "Memory that the container uses.", lambda s: s.used),
                gauge("hami_container_device_utilization_ratio",
                      "GPU time of the container over the last seconds, 0 to 100.", lambda s: s.busy_percent),
                gauge("hami_vgpu_memory_context_bytes", "Memory that contexts use.",
                      lambda s: s.held.get("context")),
                gauge("hami_vgpu_memory_module_bytes", "Memory that modules use.", lambda s: s.held.get("module")),
                gauge("hami_vgpu_memory_buffer_bytes", "Memory that everything else uses.", _buffers),
                MetricFamily("hami_mig_device_info", "Always 1: the MIG device of the container.", _mig_device,
                             _MIG_LABELS),
            ),
        ),
    ),
)  # fmt: skip


def _gpu_key(granted: GrantedGpu) -> tuple[str, ...]:
    return (granted.node, granted.gpu.uuid, str(granted.gpu.index))


def _part(taken: int, capacity: int) -> float:
    """Of a GPU that may be granted in no part, none is taken."""
    return taken / capacity if capacity else 0.0


_GPU_LABELS = ("node", "device_uuid", "device_index")

CLUSTER = ClusterMetrics(
    gpus=(
        MetricTable[GrantedGpu](
            (*_GPU_LABELS, "device_type"),
            lambda g: (*_gpu_key(g), device_type(g.gpu)),
            (
                gauge("hami_gpu_memory_limit_bytes", "Memory of a GPU that may be granted.",
                      lambda g: g.gpu.capacity_mib * MIB),
                gauge("hami_gpu_core_limit_ratio", "Compute of a GPU, always 100.", lambda g: 100),
                gauge("hami_gpu_shared_count", "Containers on a GPU.", lambda g: g.taken.slots),
                gauge("hami_gpu_core_allocated_ratio", "Compute granted, 0 to 100.",
                      lambda g: 100 * _part(g.taken.cores, g.gpu.cores_capacity)),
            ),
        ),
        MetricTable[GrantedGpu](
            (*_GPU_LABELS, "device_cores", "device_type"),
            lambda g: (*_gpu_key(g), str(g.gpu.cores_capacity), device_type(g.gpu)),
            (gauge("hami_gpu_memory_allocated_bytes", "Memory granted.", lambda g: g.taken.memory_mib * MIB),),
        ),
        MetricTable[GrantedGpu](
            (*_GPU_LABELS, "device_cores", "device_memory_limit", "device_type"),
            lambda g: (*_gpu_key(g), str(g.gpu.cores_capacity), str(g.gpu.capacity_mib), device_type(g.gpu)),
            (gauge("hami_node_gpu_overview", "Memory granted, in bytes.", lambda g: g.taken.memory_mib * MIB),),
        ),
        MetricTable[GrantedGpu](
            _GPU_LABELS,
            _gpu_key,
            (gauge("hami_node_gpu_memory_allocated_ratio", "Memory granted, 0 to 1.",
                   lambda g: _part(g.taken.memory_mib, g.gpu.capacity_mib)),),
        ),
    ),
    shares=(
        MetricTable[GrantedShare](
            ("namespace", "node", "pod", "container_index", "device_uuid"),
            lambda g: (g.namespace, g.node, g.pod, str(g.container), g.share.gpu),
            (
                gauge("hami_vgpu_memory_allocated_bytes", "Memory granted to a container.",
                      lambda g: g.share.memory_mib * MIB),
                gauge("hami_vgpu_core_allocated_ratio", "Compute granted to a container, 0 to 100.",
                      lambda g: g.share.cores),
            ),
        ),
    ),
    quotas=(
        MetricTable[QuotaUsage](
            ("namespace", "quota_name", "limit"),
            lambda q: (q.namespace, q.resource, q.hard),
            (
                gauge("hami_resource_quota_used", "What is used of a quota, in its unit.", lambda q: q.used),
                gauge("hami_resource_quota_limit", "What a quota allows, in its unit.", lambda q: q.limit),
            ),
        ),
    ),
)  # fmt: skip
