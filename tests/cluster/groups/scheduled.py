"""A control plane with the controller, three nodes of one GPU each, and members of pod groups."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.control_plane import ControlPlane, control_plane
from lamina.configuration import DEFAULT
from lamina.dialects.groups import GROUP_LABEL, KUBERNETES, SCHEDULER_PLUGINS
from lamina.ports.kube import (
    CUSTOM_RESOURCE_DEFINITIONS,
    KUBERNETES_POD_GROUPS,
    PLUGIN_POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    Kube,
    NotFound,
    Object,
)
from tests.cluster.deciding import deciding, prepare, served
from tests.waiting import until
from tests.worlds.objects import admitted_pod

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
        pod["spec"] |= {"schedulerName": DEFAULT.schedulers.assigned}
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
        async with deciding(plane, dict.fromkeys(NODE_NAMES, _SHARES)):
            made = GroupCluster(plane, api)
            ends = asyncio.create_task(made.end_pods())
            try:
                yield made
            finally:
                ends.cancel()


async def _prepare(kube: Kube, api: str) -> None:
    await prepare(kube)
    if api == SCHEDULER_PLUGINS:
        await kube.create(CUSTOM_RESOURCE_DEFINITIONS, _plugin_groups())
    await until(lambda: served(kube, KUBERNETES_POD_GROUPS if api == KUBERNETES else PLUGIN_POD_GROUPS))
    for value in (10, 20):
        name = {"name": f"priority-{value}"}
        await kube.create(PRIORITY_CLASSES, {"metadata": name, "value": value})


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
