"""The API server of a cluster, as a process of its own: `python -m bench.scheduler.api_server NODES PODS FILE`.

It serves a `ClusterKube` over HTTP as far as the controller asks, writes its kubeconfig to FILE once it listens, and
counts the requests that it is asked.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import msgspec
from aiohttp import web

from bench.scheduler.kube import ClusterKube
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.kube import AlreadyExists, BindingMetadata, Conflict, Gone, NotFound, Object, Resource, resources

_REQUEST_S = 0.002
"""How long a write to etcd takes."""
_CODES: tuple[tuple[type[Outside], int], ...] = ((NotFound, 404), (AlreadyExists, 409), (Conflict, 409), (Gone, 410))
_BY_PLURAL = {(each.group, each.plural): each for each in vars(resources).values() if isinstance(each, Resource)}


class ApiServer:
    """The routes. `requests` counts by method and kind; watches count when they begin."""

    def __init__(self, kube: ClusterKube) -> None:
        self._kube = kube
        self.requests: Counter[str] = Counter()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_get("/version", self._version)
        app.router.add_get("/requests", self._show_requests)
        app.router.add_route("*", "/{path:.+}", self._handle)
        return app

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.2"})

    async def _show_requests(self, request: web.Request) -> web.Response:
        return web.json_response(self.requests)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        resource, namespace, name, subresource = _address(request.path)
        self.requests[f"{request.method} {subresource or resource.plural}"] += 1
        try:
            if request.method != "GET":
                await asyncio.sleep(_REQUEST_S)
                answer = await self._write(request, resource, namespace, name, subresource)
            elif name:
                answer = await self._kube.get(resource, name, namespace=namespace)
            elif request.query.get("watch"):
                return await self._watch(request, resource, namespace)
            else:
                return await self._list(request, resource, namespace)
        except Outside as error:
            return _status(error)
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    async def _write(
        self, request: web.Request, resource: Resource, namespace: str, name: str, subresource: str
    ) -> Object:
        kube, body = self._kube, msgspec.json.decode(await request.read())
        if request.method == "DELETE":
            await kube.delete(resource, name, namespace=namespace, uid=(body.get("preconditions") or {}).get("uid", ""))
            return {}
        if request.method == "PATCH":
            return await kube.patch(resource, name, body, namespace=namespace, subresource=subresource)
        if request.method == "PUT":
            return await kube.replace(resource, body, subresource=subresource)
        if subresource == "binding":
            meta, node = body["metadata"], body["target"]["name"]
            carried = BindingMetadata(meta.get("annotations") or {}, meta.get("labels") or {})
            await kube.bind(name, namespace=namespace, uid=meta["uid"], node=node, metadata=carried)
            return {}
        return await kube.create(resource, body, namespace=namespace)

    async def _list(self, request: web.Request, resource: Resource, namespace: str) -> web.Response:
        encoded, version = await self._kube.encoded_list(resource, namespace, **_selectors(request))
        meta = msgspec.json.encode({"resourceVersion": version})
        return web.Response(
            body=b'{"metadata":%b,"items":[%b]}' % (meta, b",".join(encoded)), content_type="application/json"
        )

    async def _watch(self, request: web.Request, resource: Resource, namespace: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        version = request.query["resourceVersion"]
        async for event in self._kube.watch(resource, version, namespace=namespace, **_selectors(request)):
            await response.write(msgspec.json.encode({"type": event.kind, "object": event.object}) + b"\n")
        return response


def _address(path: str) -> tuple[Resource, str, str, str]:
    """Kind, namespace, name and subresource."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if (group, rest[0]) not in _BY_PLURAL:
        raise web.HTTPNotFound
    name, subresource = [*rest[1:], "", ""][:2]
    return _BY_PLURAL[group, rest[0]], namespace, name, subresource


def _selectors(request: web.Request) -> dict[str, str]:
    return {"labels": request.query.get("labelSelector", ""), "fields": request.query.get("fieldSelector", "")}


def _status(error: Outside) -> web.Response:
    code = next((code for kind, code in _CODES if isinstance(error, kind)), 422)
    reason = "AlreadyExists" if isinstance(error, AlreadyExists) else type(error).__name__
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": str(error)}, status=code)


async def serve(nodes: int, pods: int, file: Path) -> None:
    """Serve until the process is ended."""
    runner = web.AppRunner(ApiServer(ClusterKube(nodes, pods)).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {"token": "none"}}],
        "current-context": "c",
    }
    Files().write(file, json.dumps(config).encode())
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
