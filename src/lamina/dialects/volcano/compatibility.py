"""What Volcano's tools expect to find on nodes, on bound pods and in metrics, as its plugin and scheduler write it.

The list of a node's devices is written byte for byte as Volcano's plugin does. The phase of a pod is the final one: at
`allocating` Volcano's node agent would think that the pod still waits for its GPUs. Metrics have Volcano's names,
labels and units; it counts memory in MiB.
"""

from collections.abc import Iterator

from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.grants import Share
from lamina.dialects.metadata import BoundPod, Metadata
from lamina.dialects.metrics import ClusterMetrics, MetricTable, gauge
from lamina.dialects.samples import GrantedGpu, GrantedShare

REGISTER = "volcano.sh/node-vgpu-register"


def write_register(inventory: Inventory) -> str:
    """`GPU-...,10,32768,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:` for each device."""
    return "".join(
        f"{gpu.uuid},{gpu.slots},{gpu.capacity_mib},NVIDIA-{gpu.model},{str(gpu.healthy).lower()},{_mode(gpu)}:"
        for gpu in inventory.gpus
        if gpu.by_grant
    )


def read_register(text: str) -> Iterator[Gpu]:
    """The GPUs in `id,count,MiB,NVIDIA-model,health[,mode]:` for each."""
    for index, entry in enumerate(part for part in text.split(":") if part):
        uuid, count, memory, model, healthy, *_ = entry.split(",")
        yield Gpu(
            uuid=uuid,
            index=index,
            model=model,
            memory_mib=int(memory),
            capacity_mib=int(memory),
            slots=int(count),
            healthy=healthy == "true",
        )


def _mode(gpu: Gpu) -> str:
    """How the GPU is shared: by a library, MPS or MIG, now or, while it is idle, by preference."""
    now = gpu.mode or next(iter(gpu.modes), None)
    return str(now) if now in (Mode.MIG, Mode.MPS) else "hami-core"


KEYS = (
    "volcano.sh/vgpu-node",
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/devices-to-allocate",
    "volcano.sh/vgpu-time",
    "volcano.sh/bind-time",
    "volcano.sh/bind-phase",
)
_FAMILY = "NVIDIA"
_DONE = str(2**64 - 1)
"""What Volcano writes in place of a time once the pod has its devices."""


def pod_metadata(pod: BoundPod) -> Metadata:
    """What Volcano's scheduler and device plugin write."""
    devices = ";".join(
        "".join(f"{_device_id(share)},{_FAMILY},{share.memory_mib},{share.cores}:" for share in shares)
        for shares in pod.shares_by_container()
    )
    return Metadata(
        annotations={
            "volcano.sh/vgpu-node": pod.grant.node,
            "volcano.sh/vgpu-ids-new": devices,
            "volcano.sh/devices-to-allocate": devices,
            "volcano.sh/vgpu-time": _DONE,
            "volcano.sh/bind-time": str(int(pod.now)),
            "volcano.sh/bind-phase": "success",
        }
    )


def _device_id(share: Share) -> str:
    """The UUID; a MIG instance adds the number of its geometry, which is 0 here, and the slice at which it begins."""
    return f"{share.gpu}[0-{share.mig.start}]" if share.mig else share.gpu


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
