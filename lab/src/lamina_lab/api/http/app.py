"""The HTTP application: authentication, routing and error answers."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from lamina_lab.api.access.identities import Identities
from lamina_lab.api.access.reviews import REVIEWS, answer
from lamina_lab.api.http import discovery, openapi, proxies, reads, scale, streams, writes
from lamina_lab.api.http.kubelets import Kubelets
from lamina_lab.api.http.requests import ResourcePath, address, attributes, view
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.verbs import Api
from lamina_lab.api.storage.write_rules import EPHEMERAL
from lamina_lab.kubernetes.errors import ApiError, internal, method_not_allowed, no_such_path

LIMIT = 16 << 20
OPEN_PATHS = ("/healthz", "/livez", "/readyz")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_log = logging.getLogger(__name__)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(api: Api, nodes: Kubelets, token: str, agents: proxies.Agents = proxies.none) -> web.Application:
    """The whole API as an aiohttp application. The bearer of `token` may do everything, service accounts what their
    roles allow, and others nothing."""
    identities = Identities(token, api.store, api.catalog)

    async def api_paths(request: web.Request) -> web.StreamResponse:
        if (node := proxies.node_of(request.path)) is not None and request.method == "GET":
            return await proxies.metrics(agents, node)
        return await _route(api, nodes, identities, request)

    async def openapi_v3(request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"].strip("/")
        return _json(openapi.document(api.catalog, path) if path else openapi.index(api.catalog))

    app = web.Application(middlewares=[_errors, _access(identities)], client_max_size=LIMIT)
    for path in OPEN_PATHS:
        app.router.add_get(path, _ok)
        app.router.add_get(path + "/{check}", _ok)
    app.router.add_get("/version", _version)
    app.router.add_get("/openapi/v2", _openapi_v2)
    app.router.add_get("/openapi/v3{path:.*}", openapi_v3)
    app.router.add_route("*", "/{root:apis?}{path:.*}", api_paths)
    app.router.add_route("*", "/{path:.*}", _nothing)
    return app


def _json(body: Any, status: int = 200) -> web.Response:
    return reads.respond(msgspec.json.encode(body), status)


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return _json(error.status(), error.code)
    except web.HTTPException as error:
        return _json(ApiError(error.status, "", error.text or error.reason).status(), error.status)
    except ConnectionResetError:
        raise
    except Exception as error:
        _log.exception("%s %s failed", request.method, request.path)
        return _json(internal(f"{type(error).__name__}: {error}").status(), 500)


def _access(identities: Identities) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if not request.path.startswith(OPEN_PATHS):
            user = identities.user(request.headers, request.headers.getall("Impersonate-Group", ()))
            identities.check(user, attributes(request.method, request.path, request.query))
            request[writes.ASKING] = user
        return await handler(request)

    return check


async def _ok(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _version(request: web.Request) -> web.Response:
    return _json(discovery.VERSION)


async def _openapi_v2(request: web.Request) -> web.Response:
    if "protobuf" in request.headers.get("Accept", ""):
        media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
        return web.Response(body=openapi.V2_PROTOBUF, content_type=media)
    return _json(openapi.V2_JSON)


async def _nothing(request: web.Request) -> web.Response:
    raise no_such_path()


async def _route(api: Api, nodes: Kubelets, identities: Identities, request: web.Request) -> web.StreamResponse:
    place = address(request.path)
    if place is None:
        return _discovery(api, request)
    review = REVIEWS.get(place.plural)
    if review is not None and review.group == place.group:
        if request.method != "POST":
            raise method_not_allowed(request.method.lower(), place.plural)
        body = await writes.read_body(request)
        return _json(answer(review, body, writes.asking(request), identities), 201)
    resource = api.catalog.find(place.group, place.version, place.plural)
    if resource.namespaced != bool(place.namespace) and (place.name or place.namespace):
        raise no_such_path()
    if (resource.plural, place.subresource, request.method) == ("serviceaccounts", "token", "POST"):
        body = await writes.read_body(request)
        return _json(identities.tokens.issue(place.namespace, place.name, body), 201)
    return await _answer(api, nodes, resource, place, request)


async def _answer(
    api: Api, nodes: Kubelets, resource: ApiResource, place: ResourcePath, request: web.Request
) -> web.StreamResponse:
    if place.subresource and place.subresource not in resource.subresources:
        raise no_such_path()
    if place.subresource == "exec" and request.method in ("GET", "POST"):
        return await streams.execute(api, nodes, place, request)
    if request.method == "GET":
        return await _get(api, nodes, resource, place, request)
    if request.method in ("PUT", "PATCH") and not place.name:
        raise method_not_allowed(request.method.lower(), resource.plural)
    match request.method:
        case "POST":
            return await writes.create(api, resource, place, request)
        case "PUT":
            return await writes.update(api, resource, place, request)
        case "PATCH":
            return await writes.patch(api, resource, place, request)
        case "DELETE":
            return await writes.delete(api, resource, place, request)
    raise method_not_allowed(request.method.lower(), resource.plural)


async def _get(
    api: Api, nodes: Kubelets, resource: ApiResource, place: ResourcePath, request: web.Request
) -> web.StreamResponse:
    if place.subresource == "log":
        return await streams.logs(api, nodes, place, request)
    if place.subresource == "scale":
        return _json(scale.of(api.get(resource, place.namespace, place.name).obj))
    if place.subresource not in ("", "status", EPHEMERAL):
        raise method_not_allowed("get", f"{resource.plural}/{place.subresource}")
    return await reads.read(api, resource, place, request)


def _discovery(api: Api, request: web.Request) -> web.Response:
    if request.method != "GET":
        raise no_such_path()
    parts = [part for part in request.path.split("/") if part]
    seen = view(request.headers.get("Accept", ""), request.query)
    if len(parts) == 1:
        if seen.discovery:
            body = msgspec.json.encode(discovery.aggregated(api.catalog, core=parts[0] == "api"))
            return web.Response(body=body, headers={"Content-Type": AGGREGATED})
        return _json(discovery.versions() if parts[0] == "api" else discovery.groups(api.catalog))
    if parts[0] == "api":
        return _json(discovery.resources(api.catalog, "", parts[1]))
    if len(parts) == 2:
        return _json(discovery.group(api.catalog, parts[1]))
    return _json(discovery.resources(api.catalog, parts[1], parts[2]))
