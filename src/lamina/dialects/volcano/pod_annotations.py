"""The annotations of Volcano's bound pods.

The phase is the final one: at `allocating` Volcano's node agent would think that the pod still waits for its GPUs.
"""

from lamina.core.grants import Share
from lamina.dialects.metadata import BoundPod, Metadata

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
