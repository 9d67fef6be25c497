"""The annotation in which Volcano lists a node's devices, byte for byte as its plugin writes it."""

from collections.abc import Iterator

from lamina.core.gpus import Gpu, Inventory, Mode

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
