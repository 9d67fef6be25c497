"""A control plane with the controller, three nodes of one GPU each, and members of pod groups."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.control_plane import ControlPlane, control_plane
from lamina.configuration import CONFIG_MAP_NAMESPACE, DEFAULT
from lamina.controller.startup import crds
from lamina.dialects.groups import GROUP_LABEL, KUBERNETES, SCHEDULER_PLUGINS
from lamina.errors import Outside
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.ports.kube import (
    CUSTOM_RESOURCE_DEFINITIONS,
    INVENTORIES,
    KUBERNETES_POD_GROUPS,
    NAMESPACES,
    NODES,
    PLUGIN_POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    AlreadyExists,
    Kube,
    NotFound,
    Object,
    Resource,
)
from tests.controller.cluster import admitted_pod, gpus, node_object, running
from tests.waiting import until

NODE_NAMES = ("node-0", "node-1", "node-2")
GATES = ("GenericWorkload", "GangScheduling")
"""Of Kubernetes 1.36: with them, kube-scheduler itself holds the bindings of a group."""
_SHARES = 100


class GroupCluster:
    """Makes groups and pods, and ends pods that are to go, as their kubelet would."""

    def __init__(self, plane: ControlPlane, api: str) -> None:
        self.kube: Kube = plane.kube
        self.api = api

    async def pod(self, name: str, *, memory: int, priority: int = 0, group: str = "") -> None:
        pod = admitted_pod(name, gpumem=memory)
        pod["spec"] |= {"schedulerName": DEFAULT.assigned_scheduler}
        if priority:
            pod["spec"]["priorityClassName"] = f"priority-{priority}"
        if group and self.api == KUBERNETES:
            pod["spec"]["schedulingGroup"] = {"podGroupName": group}
        elif group:
            pod["metadata"]["labels"] = {GROUP_LABEL: group}
        await self.kube.create(PODS, pod)

    async def group(self, name: str, needed: int) -> None:
        meta = {"name": name, "namespace": "default"}
        if self.api == KUBERNETES:
            spec: Object = {"schedulingPolicy": {"gang": {"minCount": needed}}}
            await self.kube.create(KUBERNETES_POD_GROUPS, {"metadata": meta, "spec": spec})
        else:
            await self.kube.create(PLUGIN_POD_GROUPS, {"metadata": meta, "spec": {"minMember": needed}})

    async def delete(self, pod: str) -> None:
        await self.kube.delete(PODS, pod, namespace="default")

    async def placed(self, names: Iterable[str]) -> dict[str, str]:
        """The nodes of those of these pods that have one."""
        pods = (await self.kube.list(PODS, namespace="default")).items
        nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") or "" for pod in pods}
        return {name: nodes[name] for name in names if nodes.get(name)}

    async def all_placed(self, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)

        async def found() -> dict[str, str]:
            nodes = await self.placed(wanted)
            return nodes if len(nodes) == len(wanted) else {}

        return await until(found, lambda: f"not all of {wanted} are placed")

    async def message(self, name: str) -> str:
        """Why kube-scheduler has not placed the pod."""
        pod = await self.kube.get(PODS, name, namespace="default")
        conditions = (pod.get("status") or {}).get("conditions") or ()
        return next((str(each.get("message") or "") for each in conditions if each["type"] == "PodScheduled"), "")

    async def end_pods(self) -> None:
        """Until it is canceled."""
        while True:
            for pod in (await self.kube.list(PODS, namespace="default")).items:
                if pod["metadata"].get("deletionTimestamp"):
                    with contextlib.suppress(NotFound):
                        await self.kube.delete(PODS, pod["metadata"]["name"], namespace="default", grace_s=0)
            await asyncio.sleep(0.2)


@asynccontextmanager
async def group_cluster(folder: Path, api: str) -> AsyncIterator[GroupCluster]:
    """Raises NoPrograms."""
    own = api == KUBERNETES
    gates, apis = (GATES, ("scheduling.k8s.io/v1alpha2",)) if own else ((), ())
    async with control_plane(folder, gates=gates, apis=apis) as plane:
        await _prepare(plane.kube, api)
        nodes = [(name, gpus(1, prefix=name)) for name in NODE_NAMES]
        async with running(plane.kube, folder, *nodes, preemption=True) as controller:
            for name in NODE_NAMES:
                await _offer(plane.kube, name)
            access = ExtenderAccess(controller.urls["extenderHttp"], "")
            document = scheduler_config(DEFAULT, version=plane.version, access=access, weight=10)
            async with plane.scheduler(document):
                made = GroupCluster(plane, api)
                ends = asyncio.create_task(made.end_pods())
                try:
                    yield made
                finally:
                    ends.cancel()


async def _prepare(kube: Kube, api: str) -> None:
    for namespace in ("default", CONFIG_MAP_NAMESPACE):
        with contextlib.suppress(AlreadyExists):
            await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    await crds.apply(kube)
    if api == SCHEDULER_PLUGINS:
        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, _plugin_groups())
    await until(lambda: _served(kube, INVENTORIES))
    await until(lambda: _served(kube, KUBERNETES_POD_GROUPS if api == KUBERNETES else PLUGIN_POD_GROUPS))
    for value in (10, 20):
        name = {"name": f"priority-{value}"}
        await kube.create(PRIORITY_CLASSES, {"metadata": name, "value": value})


async def _served(kube: Kube, resource: Resource) -> bool:
    """A new kind of object is served a moment after its definition was written."""
    try:
        await kube.list(resource)
    except Outside:
        return False
    return True


async def _offer(kube: Kube, node: str) -> None:
    """What its kubelet would report."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "200", "nvidia.com/gpu": str(_SHARES)}
    ready = [{"type": "Ready", "status": "True"}]
    status = node_object(node)["status"] | {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    await kube.patch(NODES, node, {"status": status}, subresource="status")


def _plugin_groups() -> Object:
    """The definition of scheduler-plugins' PodGroup, without its schema."""
    group = PLUGIN_POD_GROUPS
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": group.version, "served": True, "storage": True, "schema": schema}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"}
    return {
        "metadata": {"name": f"{group.plural}.{group.group}", "annotations": approved},
        "spec": {
            "group": group.group,
            "names": {"plural": group.plural, "kind": group.kind, "singular": "podgroup", "listKind": "PodGroupList"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
