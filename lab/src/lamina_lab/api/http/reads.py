"""GET on resources: one object, a list, or a watch."""

import contextlib

import msgspec
from aiohttp import web

from lamina_lab.api.http import views
from lamina_lab.api.http.requests import ResourcePath, View, flag, number, view
from lamina_lab.api.schema.field_selectors import selection
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.history import Version
from lamina_lab.api.storage.verbs import Api
from lamina_lab.api.storage.watches import Watch
from lamina_lab.kubernetes.errors import ApiError
from lamina_lab.kubernetes.selectors import Predicate


def respond(body: bytes, status: int = 200, warnings: list[str] | None = None) -> web.Response:
    response = web.Response(body=body, status=status, content_type="application/json")
    for warning in warnings or []:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response


def respond_object(
    api: Api,
    resource: ApiResource,
    version: Version,
    request: web.Request,
    status: int = 200,
    warnings: list[str] | None = None,
) -> web.Response:
    seen = view(request.headers.get("Accept", ""), request.query)
    return respond(views.one(resource, version, seen, api.store.clock()), status, warnings)


def _selection(resource: ApiResource, address: ResourcePath, request: web.Request) -> Predicate | None:
    fields = request.query.get("fieldSelector", "")
    if address.name:
        fields = ",".join(filter(None, (fields, f"metadata.name={address.name}")))
    return selection(resource, request.query.get("labelSelector", ""), fields)


async def read(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.StreamResponse:
    if flag(request.query, "watch"):
        return await _watch(api, resource, address, request)
    if address.name:
        return respond_object(api, resource, api.get(resource, address.namespace, address.name), request)
    found = api.list(resource, address.namespace, _selection(resource, address, request))
    seen = view(request.headers.get("Accept", ""), request.query)
    return respond(views.many(resource, found, seen, api.store.clock(), api.store.revision))


async def _watch(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.StreamResponse:
    query = request.query
    initial = query.get("sendInitialEvents")
    seconds = number(query, "timeoutSeconds")
    watch = Watch(
        resource=resource,
        namespace=address.namespace,
        selects=_selection(resource, address, request),
        revision="" if initial == "true" else query.get("resourceVersion", ""),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial=initial == "true",
        seconds=None if seconds is None else float(seconds),
    )
    seen = view(request.headers.get("Accept", ""), query)
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache"})
    await response.prepare(request)
    try:
        await _stream(api, resource, watch, seen, response)
    except ApiError as error:
        body = msgspec.json.encode(error.status())
        await response.write(b'{"type":"ERROR","object":' + body + b"}\n")
    except ConnectionResetError:
        return response  # the client disconnected
    return response


async def _stream(api: Api, resource: ApiResource, watch: Watch, seen: View, response: web.StreamResponse) -> None:
    first = True
    async with contextlib.aclosing(api.watch(watch)) as batches:
        async for batch in batches:
            now = api.store.clock()
            lines = []
            for type_, version in batch:
                lines.append(views.change(resource, type_, version, seen, now, first))
                first = False
            await response.write(b"".join(lines))
