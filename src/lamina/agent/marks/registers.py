"""The annotations in which HAMi and Volcano list a node's devices, byte for byte as their plugins write them.

Dashboards such as HAMi's read them. HAMi leaves out fields that are 0, empty or false.
"""

import msgspec

from lamina.model.gpus import Gpu, Inventory, Mode

HAMI = "hami.io/node-nvidia-register"
VOLCANO = "volcano.sh/node-vgpu-register"


class _Device(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


def hami(inventory: Inventory) -> str:
    """`[{"id":"GPU-...","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-...","mode":"hami-core","health":true}]`."""
    devices = [
        _Device(
            id=gpu.uuid,
            index=gpu.index,
            count=gpu.slots,
            devmem=gpu.capacity_mib,
            devcore=gpu.cores_capacity,
            type=gpu.model if gpu.model.startswith("NVIDIA") else f"NVIDIA-{gpu.model}",
            numa=gpu.numa or 0,
            mode=_mode(gpu),
            health=gpu.healthy,
        )
        for gpu in inventory.gpus
        if gpu.by_grant
    ]
    return msgspec.json.encode(devices).decode()


def volcano(inventory: Inventory) -> str:
    """`GPU-...,10,32768,NVIDIA-Tesla V100-SXM2-32GB,true,hami-core:` for each device."""
    return "".join(
        f"{gpu.uuid},{gpu.slots},{gpu.capacity_mib},NVIDIA-{gpu.model},{str(gpu.healthy).lower()},{_mode(gpu)}:"
        for gpu in inventory.gpus
        if gpu.by_grant
    )


def _mode(gpu: Gpu) -> str:
    """Both systems' word for how a GPU is shared: by a library or by MIG, now or, while it is idle, by preference."""
    now = gpu.mode or next(iter(gpu.modes), None)
    return "mig" if now is Mode.MIG else "hami-core"
