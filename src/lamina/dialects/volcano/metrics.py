"""The metrics of Volcano's scheduler. Names, labels and units are Volcano's, which counts memory in MiB."""

from lamina.dialects.metrics import ClusterMetrics, MetricTable, gauge
from lamina.dialects.samples import GrantedGpu, GrantedShare

CLUSTER = ClusterMetrics(
    gpus=(
        MetricTable[GrantedGpu](
            ("devID", "NodeName"),
            lambda g: (g.gpu.uuid, g.node),
            (
                gauge("volcano_vgpu_device_shared_number", "Containers on a GPU.", lambda g: g.taken.slots),
                gauge("volcano_vgpu_device_allocated_memory", "Memory granted, in MiB.", lambda g: g.taken.memory_mib),
                gauge("volcano_vgpu_device_allocated_cores", "Compute granted, in percent.", lambda g: g.taken.cores),
                gauge("volcano_vgpu_device_memory_limit", "Memory that may be granted, in MiB.",
                      lambda g: g.gpu.capacity_mib),
            ),
        ),
    ),
    shares=(
        MetricTable[GrantedShare](
            ("devID", "NodeName", "podName"),
            lambda g: (g.share.gpu, g.node, g.pod),
            (
                gauge("volcano_vgpu_device_memory_allocation_for_a_certain_pod", "Memory granted to a pod, in MiB.",
                      lambda g: g.share.memory_mib),
                gauge("volcano_vgpu_device_core_allocation_for_a_certain_pod", "Compute granted to a pod, in percent.",
                      lambda g: g.share.cores),
            ),
        ),
    ),
)  # fmt: skip
