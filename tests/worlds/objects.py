"""GPUs, nodes and pods as the objects of Kubernetes and of Lamina that stand for them."""

from typing import Any

from lamina.configuration.config_map import IN_FORCE, SINCE
from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import write_spec
from lamina.ports.kube import Object

MIB = 32768
RECORDED = "2026-03-01T08:00:00Z"


def gpus(count: int = 2, *, memory: int = MIB, scaling: int = 1, prefix: str = "GPU") -> tuple[Gpu, ...]:
    return tuple(
        Gpu(uuid=f"{prefix}-{i}", index=i, model="V100-SXM2-32GB", memory_mib=memory, capacity_mib=memory * scaling)
        for i in range(count)
    )


def inventory(node: str = "node-0", *given: Gpu) -> Inventory:
    return Inventory(node=node, driver="515.86.01", gpus=given or gpus())


def inventory_object(node: str = "node-0", *given: Gpu) -> Object:
    return {"metadata": {"name": node}, "spec": write_spec(inventory(node, *given))}


def config_map(text: str, in_force: str | None = None) -> Object:
    """Lamina's configuration, and what is recorded as the one in force since `RECORDED`, if anything."""
    meta: Object = {"name": "lamina", "namespace": "lamina-system"}
    if in_force is not None:
        meta["annotations"] = {IN_FORCE: in_force, SINCE: RECORDED}
    return {"metadata": meta, "data": {"lamina.yaml": text}}


def node_object(name: str = "node-0") -> Object:
    return {"metadata": {"name": name}, "spec": {}, "status": {"capacity": {"cpu": "64"}}}


def gpu_pod(name: str = "pod", *, namespace: str = "default", scheduler: str = "", **limits: Any) -> Object:
    """`gpumem=1000` is the limit nvidia.com/gpumem. Without limits, a pod that requests no GPU."""
    named = {f"nvidia.com/{key.replace('_', '-')}": str(value) for key, value in limits.items()}
    spec: Object = {"containers": [{"name": "main", "image": "busybox", "resources": {"limits": named}}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def admitted_pod(name: str = "pod", **limits: Any) -> Object:
    """The pod as admission leaves it: a share comes with a count."""
    return gpu_pod(name, **({"gpu": 1} | limits if limits else {}))
