"""kube-scheduler and the controller over nodes on which nothing runs."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from bench.control_plane import ControlPlane
from lamina.agent.compat.reconciler import desired_amounts
from lamina.configuration import DEFAULT
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.gpus import Inventory
from lamina.errors import Outside
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.ports.kube import INVENTORIES, NAMESPACES, NODES, PODS, AlreadyExists, Kube, Resource
from tests.controller.cluster import running
from tests.waiting import until
from tests.worlds.objects import gpus, node_object


async def prepare(kube: Kube) -> None:
    """What the controller expects of an API server."""
    for namespace in ("default", DEFAULT_NAMESPACE):
        with contextlib.suppress(AlreadyExists):
            await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    await crds.apply(kube)
    await until(lambda: served(kube, INVENTORIES))


async def served(kube: Kube, resource: Resource) -> bool:
    """A new kind of object is served a moment after its definition was written."""
    try:
        await kube.list(resource)
    except Outside:
        return False
    return True


@asynccontextmanager
async def deciding(plane: ControlPlane, tickets: Mapping[str, int]) -> AsyncIterator[None]:
    """Both decide while the block runs. Each node has one GPU, and so many tickets for it."""
    nodes = [(name, gpus(1, prefix=name)) for name in tickets]
    async with running(plane.kube, plane.folder, *nodes, preemption=True) as controller:
        for name, given in nodes:
            await _offer(plane.kube, Inventory(node=name, driver="", gpus=given), tickets[name])
        access = ExtenderAccess(controller.urls["extenderHttp"], "")
        async with plane.scheduler(scheduler_config(DEFAULT, version=plane.version, access=access, weight=10)):
            yield


async def _offer(kube: Kube, inventory: Inventory, tickets: int) -> None:
    """What kubelet and agent would report of the node."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "200", "nvidia.com/gpu": str(tickets)}
    amounts |= {name: str(amount) for name, amount in desired_amounts(inventory, DEFAULT).items()}
    ready = [{"type": "Ready", "status": "True"}]
    status = node_object(inventory.node)["status"] | {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    await kube.patch(NODES, inventory.node, {"status": status}, subresource="status")


async def placed(kube: Kube, names: Iterable[str]) -> dict[str, str]:
    """The nodes of those of these pods that have one."""
    pods = (await kube.list(PODS, namespace="default")).items
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") or "" for pod in pods}
    return {name: nodes[name] for name in names if nodes.get(name)}


async def all_placed(kube: Kube, names: Iterable[str]) -> dict[str, str]:
    """Their nodes, once each of these pods has one."""
    wanted = list(names)

    async def found() -> dict[str, str]:
        nodes = await placed(kube, wanted)
        return nodes if len(nodes) == len(wanted) else {}

    return await until(found, lambda: f"not all of {wanted} are placed")
