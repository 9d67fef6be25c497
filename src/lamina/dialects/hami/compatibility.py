"""The annotations and labels that HAMi's tools expect to find on nodes and on bound pods.

The list of a node's devices is written byte for byte as HAMi's plugin does, without fields that are 0, empty or false.
The phase of a pod is the final one: at `allocating` HAMi's node agent would think that the pod still waits for its
GPUs.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.mig_cards import MIG_CARDS
from lamina.dialects.metadata import MAX_LABEL, BoundPod, Metadata

REGISTER = "hami.io/node-nvidia-register"
MODES = {Mode.MIG: "mig", Mode.MPS: "mps"}
"""What the annotation calls them; all others are hami-core."""


class RegisteredDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A GPU in the annotation."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


def device_type(gpu: Gpu) -> str:
    """HAMi's type of a GPU: the model with the vendor in front."""
    return gpu.model if gpu.model.startswith("NVIDIA") else f"NVIDIA-{gpu.model}"


def write_register(inventory: Inventory) -> str:
    """`[{"id":"GPU-...","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-...","mode":"hami-core","health":true}]`."""
    devices = [
        RegisteredDevice(
            id=gpu.uuid,
            index=gpu.index,
            count=gpu.slots,
            devmem=gpu.capacity_mib,
            devcore=gpu.cores_capacity,
            type=device_type(gpu),
            numa=gpu.numa or 0,
            mode=MODES.get(gpu.mode or next(iter(gpu.modes), Mode.QUOTA), "hami-core"),
            health=gpu.healthy,
        )
        for gpu in inventory.gpus
        if gpu.by_grant
    ]
    return msgspec.json.encode(devices).decode()


def read_register(text: str) -> Iterator[Gpu]:
    """The GPUs in a JSON list, or in the older form `uuid,count,MiB,cores,type,numa,health[,index,mode]:` for each."""
    if not text.lstrip().startswith("["):
        for index, entry in enumerate(part for part in text.split(":") if part):
            uuid, count, memory, cores, model, numa, healthy, *_ = entry.split(",")
            yield Gpu(
                uuid=uuid,
                index=index,
                model=model,
                memory_mib=int(memory),
                capacity_mib=int(memory),
                cores_capacity=int(cores),
                slots=int(count),
                numa=int(numa),
                healthy=healthy == "true",
            )
        return
    for device in msgspec.json.decode(text):
        yield Gpu(
            uuid=device["id"],
            index=int(device.get("index", 0)),
            model=device["type"],
            memory_mib=int(device["devmem"]),
            capacity_mib=int(device["devmem"]),
            cores_capacity=int(device.get("devcore", 100)),
            slots=int(device["count"]),
            numa=int(device.get("numa", 0)),
            healthy=bool(device.get("health", False)),
        )


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
    return Metadata(annotations=annotations, labels={"hami.io/vgpu-node": node} if len(node) <= MAX_LABEL else {})


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
