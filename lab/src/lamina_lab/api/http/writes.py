"""POST, PUT, PATCH and DELETE on resources and their subresources."""

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from lamina.ports.kube import Object
from lamina_lab.api.access.users import User
from lamina_lab.api.http import scale, views
from lamina_lab.api.http.reads import respond, respond_object
from lamina_lab.api.http.requests import ResourcePath, View, dry_run, flag, number
from lamina_lab.api.patching import patches
from lamina_lab.api.patching.server_side_apply import applied, applied_new
from lamina_lab.api.protobuf import decoder
from lamina_lab.api.schema.events import from_core
from lamina_lab.api.schema.field_selectors import selection
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.verbs import Api, Call
from lamina_lab.api.storage.write_rules import EPHEMERAL
from lamina_lab.kubernetes.errors import ApiError, bad_request, method_not_allowed, success, unsupported_media

_MEDIA = ("application/json", "application/yaml", "text/plain", "application/octet-stream")
STRICTNESS = ("Ignore", "Warn", "Strict")
POLICIES = ("Background", "Foreground", "Orphan")


ASKING = web.RequestKey("asking", User)


def asking(request: web.Request) -> User:
    """The user that a request is from."""
    return request[ASKING]


def _call(request: web.Request) -> Call:
    manager = request.query.get("fieldManager") or request.headers.get("User-Agent", "unknown").split("/")[0]
    strictness = request.query.get("fieldValidation") or "Warn"
    if strictness not in STRICTNESS:
        raise bad_request(f'fieldValidation: Unsupported value: "{strictness}": supported values: {STRICTNESS}')
    user = asking(request)
    return Call(dry_run(request.query), user.name, user.groups, manager, strictness)


async def read_body(request: web.Request) -> Any:
    """The object in a request, from JSON, YAML or protobuf. Raises 400 or 415."""
    media, body = request.content_type, await request.read()
    if media == decoder.MEDIA:
        return decoder.decode(body)
    if media not in _MEDIA:
        raise unsupported_media((*_MEDIA[:2], decoder.MEDIA))
    return patches.decode(media, body)


async def create(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.Response:
    body, call = views.from_client(resource, await read_body(request)), _call(request)
    stored = api.catalog.named(resource.storage)
    if resource.namespaced and not address.namespace:
        raise bad_request("an empty namespace may not be set during creation")
    if address.subresource == "binding":
        return await _bind(api, address, body, call)
    if address.subresource == "eviction":
        return await _evict(api, stored, address, body, call)
    if address.subresource or address.name:
        raise method_not_allowed("create", resource.plural)
    version = await api.create(stored, address.namespace, body, call)
    return respond_object(api, resource, version, request, 201, call.warnings)


async def _bind(api: Api, address: ResourcePath, body: Any, call: Call) -> web.Response:
    target = body.get("target") if isinstance(body, dict) else None
    node = target.get("name") if isinstance(target, dict) else None
    if not node:
        raise bad_request("a Binding must name a node in target.name")
    await api.bind(address.namespace, address.name, body, call)
    return respond(msgspec.json.encode({**success({}), "code": 201}), 201)


async def _evict(api: Api, resource: ApiResource, address: ResourcePath, body: Any, call: Call) -> web.Response:
    options = body.get("deleteOptions") if isinstance(body, dict) else None
    await api.delete(resource, address.namespace, address.name, _deletion(options or {}), call)
    return respond(msgspec.json.encode({**success({}), "code": 201}), 201)


async def update(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.Response:
    body, call = views.from_client(resource, await read_body(request)), _call(request)
    stored = api.catalog.named(resource.storage)
    if address.subresource == "scale":
        return await _rescale(api, stored, address, lambda _: body, call)
    subresource = _writable(resource, address)
    version = await api.update(stored, address.namespace, address.name, body, call, subresource)
    return respond_object(api, resource, version, request, 200, call.warnings)


async def patch(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.Response:
    call, media, body = _call(request), request.content_type, await request.read()
    stored = api.catalog.named(resource.storage)
    if media == patches.APPLY:
        return await _apply(api, resource, address, request, call)
    plain = patches.patcher(resource, media, body)
    if address.subresource == "scale":
        return await _rescale(api, stored, address, plain, call)

    def change(obj: Object) -> Object:
        if not resource.shares:
            return plain(obj)
        changed: Object = views.from_client(resource, plain(from_core(obj)))
        return changed

    subresource = _writable(resource, address)
    version = await api.patch(stored, address.namespace, address.name, change, call, subresource)
    return respond_object(api, resource, version, request, 200, call.warnings)


async def _apply(
    api: Api, resource: ApiResource, address: ResourcePath, request: web.Request, call: Call
) -> web.Response:
    if not request.query.get("fieldManager"):
        raise bad_request("fieldManager: Required value: is required for apply patch")
    wanted = patches.decode(patches.APPLY, await request.read())
    if not isinstance(wanted, dict):
        raise bad_request("an applied configuration must be an object")
    stored, force = api.catalog.named(resource.storage), flag(request.query, "force")
    subresource = _writable(resource, address)
    if subresource == "" and api.store.find(stored, address.namespace, address.name) is None:
        body = applied_new(wanted, call.manager, api.store.now())
        version = await api.create(stored, address.namespace, body, call, address.name)
        return respond_object(api, resource, version, request, 201, call.warnings)

    def change(obj: Object) -> Object:
        return applied(obj, wanted, call.manager, api.store.now(), force)

    version = await api.patch(stored, address.namespace, address.name, change, call, subresource)
    return respond_object(api, resource, version, request, 200, call.warnings)


def _writable(resource: ApiResource, address: ResourcePath) -> str:
    """The subresource of an update. A namespace's finalize subresource is the namespace itself here."""
    if address.subresource == "finalize":
        return ""
    if address.subresource not in ("", "status", EPHEMERAL) or (address.subresource and not resource.has_status):
        raise method_not_allowed("update", f"{resource.plural}/{address.subresource}")
    return address.subresource


async def _rescale(
    api: Api, resource: ApiResource, address: ResourcePath, change: Callable[[Object], Any], call: Call
) -> web.Response:
    def rescaled(obj: Object) -> Object:
        return scale.scaled(resource, obj, change(scale.of(obj)))

    version = await api.patch(resource, address.namespace, address.name, rescaled, call)
    return respond(msgspec.json.encode(scale.of(version.obj)), 200, call.warnings)


async def delete(api: Api, resource: ApiResource, address: ResourcePath, request: web.Request) -> web.Response:
    if address.subresource:
        raise method_not_allowed("delete", f"{resource.plural}/{address.subresource}")
    body = await read_body(request) if request.can_read_body else {}
    options = {**_query_options(request), **(body if isinstance(body, dict) else {})}
    call, deletion, stored = _call(request), _deletion(options), api.catalog.named(resource.storage)
    call.dry_run = call.dry_run or bool(options.get("dryRun"))
    if address.name:
        version, gone = await api.delete(stored, address.namespace, address.name, deletion, call)
        if gone:
            details = {"name": address.name, "group": resource.group, "kind": resource.plural}
            done = success({key: value for key, value in details.items() if value} | {"uid": version.meta["uid"]})
            return respond(msgspec.json.encode(done), 200, call.warnings)
        return respond_object(api, resource, version, request, 200, call.warnings)
    return await _delete_all(api, resource, address, request, deletion, call)


async def _delete_all(
    api: Api, resource: ApiResource, address: ResourcePath, request: web.Request, deletion: Deletion, call: Call
) -> web.Response:
    query, stored = request.query, api.catalog.named(resource.storage)
    selects = selection(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    found = api.list(stored, address.namespace, selects)
    for version in found:
        try:
            await api.delete(stored, *version.key, deletion, call)
        except ApiError as error:
            if error.code != 404:  # it was already deleted
                raise
    now = api.store.clock()
    return respond(views.many(resource, found, View(), now, api.store.revision), 200, call.warnings)


def _query_options(request: web.Request) -> Object:
    found: Object = {}
    grace, policy = number(request.query, "gracePeriodSeconds"), request.query.get("propagationPolicy")
    if grace is not None:
        found["gracePeriodSeconds"] = grace
    if policy:
        found["propagationPolicy"] = policy
    return found


def _deletion(options: Object) -> Deletion:
    policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "Background")
    if policy not in POLICIES:
        raise bad_request(f'propagationPolicy: Unsupported value: "{policy}": supported values: {", ".join(POLICIES)}')
    conditions = options.get("preconditions") or {}
    return Deletion(
        grace=options.get("gracePeriodSeconds"),
        propagation=policy,
        uid=conditions.get("uid") or "",
        revision=conditions.get("resourceVersion") or "",
    )
