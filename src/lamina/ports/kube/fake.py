"""A small API server in memory, for tests of whatever speaks to Kubernetes.

It keeps the promises that callers build upon: UIDs, resourceVersions with conflicts, finalizers, garbage collection
by owner, watches from a version with 410 once history is cut, binding. It checks no schema and no rights.
"""

import asyncio
import copy
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

import jsonpatch
import msgspec

from lamina.errors import Outside
from lamina.ports.kube import merging, selecting
from lamina.ports.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Refused
from lamina.ports.kube.protocol import Listing, Object, Patch, PatchKind, Watched
from lamina.ports.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    GRANTS,
    INVENTORIES,
    MUTATING_WEBHOOKS,
    PODS,
    Resource,
)

_Key = tuple[Resource, str, str]
_ONLY_WITH_VERSION = (MUTATING_WEBHOOKS, CUSTOM_RESOURCE_DEFINITIONS, GRANTS, INVENTORIES)
"""Kinds that a server replaces only for those who name the version they have seen."""


class _Change(NamedTuple):
    version: int
    resource: Resource
    before: Object | None
    after: Object | None


class FakeKube:
    """A `Kube` without a server. Objects go in and come out as copies.

    `failing` maps a verb ("create", "bind", ...) to a function that is asked before each such call with the resource
    and the name, and may return the error to raise. `calls` lists what was asked, in order.
    """

    def __init__(self) -> None:
        self.failing: dict[str, Callable[[Resource, str], Outside | None]] = {}
        self.calls: list[tuple[str, Resource, str]] = []
        self._objects: dict[_Key, Object] = {}
        self._history: list[_Change] = []
        self._version = 0
        self._oldest = 0
        self._lines = 0
        self._wake = asyncio.Event()

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        await self._called("get", resource, name)
        return copy.deepcopy(self._found(resource, namespace, name))

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        await self._called("list", resource, "")
        wanted = selecting.selector(resource, namespace, labels, fields)
        items = [copy.deepcopy(obj) for (kind, _, _), obj in self._objects.items() if kind == resource and wanted(obj)]
        return Listing(items, str(self._version))

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        await self._called("watch", resource, "")
        wanted = selecting.selector(resource, namespace, labels, fields)
        seen, line = int(version), self._lines
        while self._lines == line:
            if seen < self._oldest:
                raise Gone(f"resourceVersion {seen} is too old")
            for change in [change for change in self._history if change.version > seen]:
                seen = change.version
                if change.resource == resource and (told := _told(change, wanted)) is not None:
                    yield told
            if seen == self._version:
                await self._wake.wait()

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        obj = _sent(obj)
        meta = obj["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        await self._called("create", resource, meta["name"])
        if resource.namespaced:
            meta["namespace"] = namespace or meta.get("namespace") or "default"
        if self._key(resource, meta.get("namespace", ""), meta["name"]) in self._objects:
            raise AlreadyExists(f"{resource.plural} {meta['name']!r} already exists")
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        meta["generation"] = 1
        obj = {"apiVersion": resource.api_version, "kind": resource.kind} | obj
        return self._store(resource, None, obj)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        meta = obj["metadata"]
        await self._called("replace", resource, meta["name"])
        before = self._found(resource, meta.get("namespace", ""), meta["name"])
        if resource in _ONLY_WITH_VERSION and "resourceVersion" not in meta:
            raise Refused(
                f"{resource.plural} {meta['name']!r} is invalid: resourceVersion must be specified for an update"
            )
        if meta.get("resourceVersion", before["metadata"]["resourceVersion"]) != before["metadata"]["resourceVersion"]:
            raise Conflict(f"{resource.plural} {meta['name']!r} has changed meanwhile")
        after = {"apiVersion": resource.api_version, "kind": resource.kind} | _sent(obj)
        return self._change(resource, before, after, subresource)

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
        await self._called("patch", resource, name)
        before = self._found(resource, namespace, name)
        if isinstance(body, list):
            try:
                after = jsonpatch.apply_patch(before, body)
            except jsonpatch.JsonPatchException as error:
                raise Refused(f"the patch of {resource.plural} {name!r} does not apply: {error}") from error
        else:
            after = merging.merged(before, body, by_key=kind is PatchKind.STRATEGIC)
        if after["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            raise Conflict(f"{resource.plural} {name!r} has changed meanwhile")
        return self._change(resource, before, _sent(after), subresource)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        await self._called("delete", resource, name)
        obj = self._found(resource, namespace, name)
        if uid and obj["metadata"]["uid"] != uid:
            raise Conflict(f"{resource.plural} {name!r} has the UID {obj['metadata']['uid']}, not {uid}")
        if obj["metadata"].get("finalizers"):
            after = copy.deepcopy(obj)
            after["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            self._store(resource, obj, after)
        else:
            self._remove(resource, obj)

    async def bind(self, pod: str, *, namespace: str, uid: str, node: str) -> None:
        await self._called("bind", PODS, pod)
        obj = self._found(PODS, namespace, pod)
        if obj["metadata"]["uid"] != uid:
            raise Conflict(f"pod {pod!r} has the UID {obj['metadata']['uid']}, not {uid}")
        if obj["spec"].get("nodeName") or obj["metadata"].get("deletionTimestamp"):
            raise Conflict(f"pod {pod!r} is being deleted or already assigned to a node")
        after = copy.deepcopy(obj)
        after["spec"]["nodeName"] = node
        self._store(PODS, obj, after)

    async def close(self) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """End every watch, as a server does that restarts."""
        self._lines += 1
        self._wake_up()

    def forget_history(self) -> None:
        """Cut the history: a watch from any version before now is answered with Gone."""
        self._oldest = self._version
        self._history.clear()

    async def _called(self, verb: str, resource: Resource, name: str) -> None:
        self.calls.append((verb, resource, name))
        await asyncio.sleep(0)
        if verb in self.failing and (error := self.failing[verb](resource, name)) is not None:
            raise error

    def _key(self, resource: Resource, namespace: str, name: str) -> _Key:
        return resource, namespace if resource.namespaced else "", name

    def _found(self, resource: Resource, namespace: str, name: str) -> Object:
        try:
            return self._objects[self._key(resource, namespace, name)]
        except KeyError:
            raise NotFound(f"{resource.plural} {name!r} not found") from None

    def _change(self, resource: Resource, before: Object, after: Object, subresource: str) -> Object:
        if subresource not in ("", "status"):
            raise Refused(f"{resource.plural} have no subresource {subresource!r} that can be written")
        if subresource:
            after = copy.deepcopy(before) | {"status": after.get("status", {})}
        kept = ("uid", "creationTimestamp", "generation", "namespace", "deletionTimestamp")
        after["metadata"] |= {field: before["metadata"][field] for field in kept if field in before["metadata"]}
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] += 1
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self._remove(resource, before)
            return after
        return self._store(resource, before, after)

    def _store(self, resource: Resource, before: Object | None, after: Object) -> Object:
        meta = after["metadata"]
        self._happened(resource, before, after)
        self._objects[self._key(resource, meta.get("namespace", ""), meta["name"])] = after
        return copy.deepcopy(after)

    def _remove(self, resource: Resource, obj: Object) -> None:
        last = copy.deepcopy(obj)
        del self._objects[self._key(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])]
        self._happened(resource, last, None)
        self._collect_garbage(obj["metadata"]["uid"])

    def _collect_garbage(self, owner: str) -> None:
        alive = {obj["metadata"]["uid"] for obj in self._objects.values()}
        for (resource, _, _), obj in list(self._objects.items()):
            owners = {reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()}
            if owner in owners and not owners & alive:
                self._remove(resource, obj)

    def _happened(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        self._version += 1
        changed = after if after is not None else before
        assert changed is not None
        changed["metadata"]["resourceVersion"] = str(self._version)
        self._history.append(_Change(self._version, resource, before, after))
        self._wake_up()

    def _wake_up(self) -> None:
        self._wake.set()
        self._wake = asyncio.Event()


def _sent(obj: Object) -> Object:
    """A copy as the wire makes it: what JSON cannot say does not arrive."""
    sent: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return sent


def _told(change: _Change, wanted: Callable[[Object], bool]) -> Watched | None:
    """What a watch with a selector sees of a change: an object that leaves the selection is deleted for it."""
    before = change.before if change.before is not None and wanted(change.before) else None
    after = change.after if change.after is not None and wanted(change.after) else None
    if after is not None:
        return Watched("ADDED" if before is None else "MODIFIED", copy.deepcopy(after))
    if before is None:
        return None
    last = copy.deepcopy(before)
    last["metadata"]["resourceVersion"] = str(change.version)
    return Watched("DELETED", last)
