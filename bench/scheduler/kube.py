"""The API server of a cluster in which pods run and others wait: a `FakeKube` that makes its objects when asked."""

import asyncio
from collections.abc import Iterable

import msgspec

from bench.scheduler import cluster
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Listing, Object, Resource
from lamina.ports.kube.fake import FakeKube


class ClusterKube(FakeKube):
    """Running pods are listed and then forgotten; a pod named `new-NUMBER` exists from when it is asked for."""

    def __init__(self, nodes: int, pods: int) -> None:
        super().__init__()
        self._nodes, self._pods = nodes, pods

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        if resource == PODS and name.startswith("new-"):
            self._objects[PODS].setdefault((namespace, name), cluster.new_pod(name))
        return await super().get(resource, name, namespace=namespace)

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        own = await super().list(resource, namespace=namespace, labels=labels, fields=fields)
        if labels or fields:
            return own
        found: list[Object] = []
        for obj in self._running(resource):
            found.append(msgspec.json.decode(msgspec.json.encode(obj)))
            if len(found) % 1000 == 0:
                await asyncio.sleep(0)
        return Listing(found + own.items, own.version)

    def _running(self, resource: Resource) -> Iterable[Object]:
        if resource == INVENTORIES:
            return cluster.inventories(self._nodes)
        if resource == NODES:
            return cluster.hosts(self._nodes)
        if resource == PODS:
            return (pod for pod, _ in cluster.running(self._nodes, self._pods))
        if resource == GRANTS:
            return (grant for _, grant in cluster.running(self._nodes, self._pods))
        return ()
