"""Which GPUs a node of a dump has: from its Inventory, else from what HAMi, Volcano or NVIDIA's plugin wrote on it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lamina.errors import BadInput
from lamina.model.cards import card
from lamina.model.gpus import Gpu, cordoned

_HAMI = "hami.io/node-nvidia-register"
_VOLCANO = "volcano.sh/node-vgpu-register"
_COUNT = "nvidia.com/gpu"
_UNKNOWN_MIB = 16384


def gpus_of(node: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """The GPUs of a Node object. Raises BadInput where an annotation cannot be read."""
    meta = node["metadata"]
    annotations = meta.get("annotations") or {}
    try:
        if annotations.get(_HAMI):
            found = list(_hami(annotations[_HAMI]))
        elif annotations.get(_VOLCANO):
            found = list(_volcano(annotations[_VOLCANO]))
        else:
            found = list(_plain(node))
    except (ValueError, IndexError, KeyError, msgspec.DecodeError) as error:
        raise BadInput(f"node {meta['name']}: its annotation about GPUs cannot be read: {error}") from error
    closed = cordoned(annotations)
    return tuple(msgspec.structs.replace(gpu, cordoned=gpu.uuid in closed) for gpu in found)


def _hami(text: str) -> Iterator[Gpu]:
    """A JSON list, or the older `uuid,count,MiB,cores,type,numa,health[,index,mode]:` for each GPU."""
    if not text.lstrip().startswith("["):
        for place, entry in enumerate(part for part in text.split(":") if part):
            uuid, count, mib, percent, model, numa, healthy, *_ = entry.split(",")
            yield _gpu(uuid, place, model, int(mib), int(count), int(percent), int(numa), healthy == "true")
        return
    for each in msgspec.json.decode(text):  # whatever is 0 or false is left out
        health = bool(each.get("health", False))
        memory, cores = int(each["devmem"]), int(each.get("devcore", 100))
        yield _gpu(
            each["id"], int(each.get("index", 0)), each["type"], memory, int(each["count"]), cores,
            int(each.get("numa", 0)), health,
        )  # fmt: skip


def _volcano(text: str) -> Iterator[Gpu]:
    """`id,count,MiB,NVIDIA-model,health[,mode]:` for each GPU."""
    for place, entry in enumerate(part for part in text.split(":") if part):
        uuid, count, memory, model, health, *_ = entry.split(",")
        yield _gpu(uuid, place, model, int(memory), int(count), 100, None, health == "true")


def _plain(node: Mapping[str, Any]) -> Iterator[Gpu]:
    """NVIDIA's plugin: a count of GPUs or of replicas of them; the feature discovery's labels say which."""
    status, labels = node.get("status") or {}, node["metadata"].get("labels") or {}
    offered = int((status.get("allocatable") or status.get("capacity") or {}).get(_COUNT, 0))
    replicas = max(1, int(labels.get("nvidia.com/gpu.replicas") or 1))
    count = int(labels.get("nvidia.com/gpu.count") or -(-offered // replicas))
    model = str(labels.get("nvidia.com/gpu.product") or "GPU").removesuffix("-SHARED")
    for place in range(count):
        memory = int(labels.get("nvidia.com/gpu.memory") or 0) or _memory_of(model)
        yield _gpu(f"{node['metadata']['name']}-{place}", place, model, memory, 10, 100, None, True)


def _memory_of(model: str) -> int:
    try:
        return card(model).memory_mib
    except BadInput:
        return _UNKNOWN_MIB


def _gpu(
    uuid: str, index: int, model: str, memory: int, slots: int, cores: int, numa: int | None, healthy: bool
) -> Gpu:
    return Gpu(
        uuid=uuid, index=index, model=model, memory_mib=memory, capacity_mib=memory, cores_capacity=cores,
        slots=slots, numa=numa, healthy=healthy, reason="" if healthy else "the dump says so",
    )  # fmt: skip
