"""The annotations and labels of HAMi's bound pods.

The phase is the final one: at `allocating` HAMi's node agent would think that the pod still waits for its GPUs.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from lamina.core.mig_cards import MIG_CARDS
from lamina.dialects.metadata import LONGEST_LABEL, BoundPod, Metadata

KEYS = (
    "hami.io/vgpu-node",
    "hami.io/vgpu-devices-to-allocate",
    "hami.io/vgpu-devices-allocated",
    "hami.io/vgpu-time",
    "hami.io/bind-time",
    "hami.io/bind-phase",
    "hami.io/vgpu-mig-allocations",
)
_FAMILY = "NVIDIA"


def pod_metadata(pod: BoundPod) -> Metadata:
    """What HAMi's scheduler and device plugin write."""
    node, moment = pod.grant.node, str(int(pod.now))
    devices = "".join(
        "".join(f"{share.gpu},{_FAMILY},{share.memory_mib},{share.cores}:" for share in shares) + ";"
        for shares in pod.shares_by_container()
    )
    annotations = {
        "hami.io/vgpu-node": node,
        "hami.io/vgpu-devices-to-allocate": devices,
        "hami.io/vgpu-devices-allocated": devices,
        "hami.io/vgpu-time": moment,
        "hami.io/bind-time": moment,
        "hami.io/bind-phase": "success",
    }
    instances = list(_mig_instances(pod))
    if instances:
        annotations["hami.io/vgpu-mig-allocations"] = msgspec.json.encode(instances).decode()
    return Metadata(annotations=annotations, labels={"hami.io/vgpu-node": node} if len(node) <= LONGEST_LABEL else {})


def _mig_instances(pod: BoundPod) -> Iterator[dict[str, Any]]:
    """The MIG instances, without the IDs that they get when the node makes them."""
    gpus = pod.inventory.gpus if pod.inventory else ()
    cards = {gpu.uuid: MIG_CARDS[gpu.mig_card] for gpu in gpus if gpu.mig_card}
    for container_index, shares in enumerate(pod.shares_by_container()):
        for device_index, share in enumerate(shares):
            if share.mig is not None and share.gpu in cards:
                size = cards[share.gpu].profile(share.mig.profile).size
                yield {
                    "containerIndex": container_index,
                    "deviceIndex": device_index,
                    "gpuUUID": share.gpu,
                    "profile": share.mig.profile,
                    "placement": {"start": share.mig.start, "size": size},
                }
