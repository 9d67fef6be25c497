"""The annotation in which HAMi lists a node's devices, byte for byte as its plugin writes it.

Dashboards such as HAMi's read it. Fields that are 0, empty or false are left out.
"""

from collections.abc import Iterator

import msgspec

from lamina.core.gpus import Gpu, Inventory, Mode

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
