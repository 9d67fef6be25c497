"""A `Kube` that costs little: lists come decoded from JSON, and each answer takes as long as a server's."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import chain

import msgspec

from bench.scheduler import cluster
from lamina.ports.kube import (
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    AlreadyExists,
    Conflict,
    Listing,
    NotFound,
    Object,
    Patch,
    PatchKind,
    Resource,
    Watched,
)

_ANSWER_S = 0.002


class BenchKube:
    """Running pods are listed and then forgotten; a pod named `new-NUMBER` exists from when it is asked for."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._nodes, self._pods = nodes, pods
        self._objects: dict[tuple[Resource, str, str], Object] = {}
        self._told: dict[Resource, list[asyncio.Queue[Watched]]] = {}
        self._version = 1

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        await asyncio.sleep(_ANSWER_S)
        key = resource, namespace, name
        if key not in self._objects and resource == PODS and name.startswith("new-"):
            self._objects[key] = cluster.new_pod(name)
        if key not in self._objects:
            raise NotFound(f"{resource.plural} {name} not found")
        return self._objects[key]

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        own = [obj for (kind, _, _), obj in self._objects.items() if kind == resource]
        if labels or fields:
            await asyncio.sleep(_ANSWER_S)
            return Listing([], str(self._version))
        found: list[Object] = []
        for obj in chain(self._canned(resource), own):
            found.append(msgspec.json.decode(msgspec.json.encode(obj)))
            if len(found) % 1000 == 0:
                await asyncio.sleep(0)
        return Listing(found, str(self._version))

    def _canned(self, resource: Resource) -> Iterable[Object]:
        if resource == INVENTORIES:
            return cluster.inventories(self._nodes)
        if resource == NODES:
            return cluster.hosts(self._nodes)
        if resource == PODS:
            return (pod for pod, _ in cluster.running(self._nodes, self._pods))
        if resource == GRANTS:
            return (grant for _, grant in cluster.running(self._nodes, self._pods))
        return ()

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        queue: asyncio.Queue[Watched] = asyncio.Queue()
        self._told.setdefault(resource, []).append(queue)
        while True:
            yield await queue.get()

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        await asyncio.sleep(_ANSWER_S)
        meta = dict(obj["metadata"])
        key = resource, namespace or meta.get("namespace", ""), meta["name"]
        if key in self._objects:
            raise AlreadyExists(f"{resource.plural} {meta['name']} exists")
        meta["uid"] = f"{resource.plural}-{self._version}"
        return self._store(key, {**obj, "metadata": meta}, "ADDED")

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        await asyncio.sleep(_ANSWER_S)
        key = resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        if self._objects[key]["metadata"]["resourceVersion"] != obj["metadata"].get("resourceVersion"):
            raise Conflict(f"{resource.plural} {key[2]} has changed")
        return self._store(key, {**obj, "metadata": dict(obj["metadata"])}, "MODIFIED")

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Patch,
        *,
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
    ) -> Object:
        return await self.get(resource, name, namespace=namespace)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        await asyncio.sleep(_ANSWER_S)
        gone = self._objects.pop((resource, namespace, name), None)
        if gone is not None:
            self._tell(resource, "DELETED", gone)

    async def bind(self, pod: str, *, namespace: str, uid: str, node: str) -> None:
        found = await self.get(PODS, pod, namespace=namespace)
        bound = {**found, "metadata": dict(found["metadata"]), "spec": {**found["spec"], "nodeName": node}}
        self._store((PODS, namespace, pod), bound, "MODIFIED")

    async def close(self) -> None:
        return None

    def _store(self, key: tuple[Resource, str, str], obj: Object, kind: str) -> Object:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._objects[key] = obj
        self._tell(key[0], kind, obj)
        return obj

    def _tell(self, resource: Resource, kind: str, obj: Object) -> None:
        for queue in self._told.get(resource, ()):
            queue.put_nowait(Watched(kind, obj))
