"""A small API server in memory, for tests of whatever speaks to Kubernetes.

It keeps the promises that callers build upon: UIDs, resourceVersions with conflicts, finalizers, garbage collection
by owner, watches from a version with 410 once history is cut, binding. It checks no schema and no rights.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator

import jsonpatch
import msgspec

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import Outside
from lamina.ports.kube import merge_patch, selectors
from lamina.ports.kube.errors import AlreadyExists, Conflict, NotFound, Refused
from lamina.ports.kube.fake_history import FakeHistory
from lamina.ports.kube.protocol import (
    NO_METADATA,
    BindingMetadata,
    Listing,
    Object,
    Patch,
    StrategicPatch,
    Watched,
)
from lamina.ports.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DISRUPTION_BUDGETS,
    GRANTS,
    INVENTORIES,
    MUTATING_WEBHOOKS,
    PODS,
    Resource,
)

_Key = tuple[str, str]
"""Namespace and name."""
_ONLY_WITH_VERSION = (MUTATING_WEBHOOKS, CUSTOM_RESOURCE_DEFINITIONS, GRANTS, INVENTORIES)
"""Kinds that a server replaces only for those who name the version they have seen."""


class FakeKube:
    """A `Kube` without a server. Objects go in and come out as copies.

    `failing` maps a verb ("create", "bind", ...) to a function that is asked before each such call with the resource
    and the name, and may return the error to raise. `calls` lists what was asked, in order.
    """

    def __init__(self) -> None:
        self.failing: dict[str, Callable[[Resource, str], Outside | None]] = {}
        self.calls: list[tuple[str, Resource, str]] = []
        self.lamina_namespace = DEFAULT_NAMESPACE
        self.copies_labels = True
        """Whether binding a pod copies the Binding's labels, as Kubernetes does from version 1.35 on."""
        self.pages: dict[tuple[Resource, str, str], bytes] = {}
        """What pods and nodes answer to proxied requests, by their kind, their name with a port, and the path."""
        self._objects: defaultdict[Resource, dict[_Key, Object]] = defaultdict(dict)
        self._history = FakeHistory()
        self._lines = 0

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        await self._called("get", resource, name)
        return _copy(self._found(resource, namespace, name))

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        await self._called("list", resource, "")
        wanted = selectors.selector(resource, namespace, labels, fields)
        items = [_copy(obj) for obj in self._objects[resource].values() if wanted(obj)]
        return Listing(items, str(self._history.version))

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        await self._called("watch", resource, "")
        wanted = selectors.selector(resource, namespace, labels, fields)
        seen, line = int(version), self._lines
        while self._lines == line:
            changes, seen = self._history.since(resource, seen)
            for change in changes:
                if (event := change.event(wanted)) is not None:
                    yield event
            if not changes:
                await self._history.next_change(resource)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        obj = _copy(obj)
        meta = obj["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
        await self._called("create", resource, meta["name"])
        if resource.namespaced:
            meta["namespace"] = namespace or meta.get("namespace") or "default"
        if _key(resource, meta.get("namespace", ""), meta["name"]) in self._objects[resource]:
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
        after = {"apiVersion": resource.api_version, "kind": resource.kind} | _copy(obj)
        return self._change(resource, before, after, subresource)

    async def patch(
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object:
        await self._called("patch", resource, name)
        before = self._found(resource, namespace, name)
        if isinstance(body, list):
            try:
                after = jsonpatch.apply_patch(before, body)
            except jsonpatch.JsonPatchException as error:
                raise Refused(f"the patch of {resource.plural} {name!r} does not apply: {error}") from error
        elif isinstance(body, StrategicPatch):
            after = merge_patch.merged(before, body.body, by_key=True)
        else:
            after = merge_patch.merged(before, body)
        if after["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            raise Conflict(f"{resource.plural} {name!r} has changed meanwhile")
        return self._change(resource, before, _copy(after), subresource)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        await self._called("delete", resource, name)
        obj = self._found(resource, namespace, name)
        if uid and obj["metadata"]["uid"] != uid:
            raise Conflict(f"{resource.plural} {name!r} has the UID {obj['metadata']['uid']}, not {uid}")
        if obj["metadata"].get("finalizers"):
            after = _copy(obj)
            after["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            self._store(resource, obj, after)
        else:
            self._remove(resource, obj)

    async def bind(
        self,
        pod: str,
        *,
        namespace: str,
        uid: str,
        node: str,
        metadata: BindingMetadata = NO_METADATA,
        version: str = "",
    ) -> None:
        await self._called("bind", PODS, pod)
        obj = self._found(PODS, namespace, pod)
        if obj["metadata"]["uid"] != uid:
            raise Conflict(f"pod {pod!r} has the UID {obj['metadata']['uid']}, not {uid}")
        if obj["spec"].get("nodeName") or obj["metadata"].get("deletionTimestamp"):
            raise Conflict(f"pod {pod!r} is being deleted or already assigned to a node")
        if version and obj["metadata"]["resourceVersion"] != version:
            raise Conflict(f"pod {pod!r} has the version {obj['metadata']['resourceVersion']}, not {version}")
        after = _copy(obj)
        after["spec"]["nodeName"] = node
        if metadata.annotations:
            after["metadata"]["annotations"] = {**(after["metadata"].get("annotations") or {}), **metadata.annotations}
        if metadata.labels and self.copies_labels:
            after["metadata"]["labels"] = {**(after["metadata"].get("labels") or {}), **metadata.labels}
        self._store(PODS, obj, after)

    async def evict(self, pod: str, *, namespace: str, uid: str, grace_s: int | None = None) -> None:
        await self._called("evict", PODS, pod)
        meta = self._found(PODS, namespace, pod)["metadata"]
        for budget in self._objects[DISRUPTION_BUDGETS].values():
            covers = selectors.matches((budget.get("spec") or {}).get("selector"), meta.get("labels") or {})
            allowed = (budget.get("status") or {}).get("disruptionsAllowed") or 0
            if budget["metadata"]["namespace"] == namespace and covers and not allowed:
                raise Refused("Cannot evict pod as it would violate the pod's disruption budget.")
        await self.delete(PODS, pod, namespace=namespace, uid=uid, grace_s=grace_s)

    async def proxied(self, resource: Resource, name: str, path: str, *, namespace: str = "") -> bytes:
        await self._called("proxied", resource, name)
        try:
            return self.pages[resource, name, path]
        except KeyError:
            raise NotFound(f"{resource.plural} {name!r} does not answer") from None

    async def close(self) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """End every watch, as a server does that restarts."""
        self._lines += 1
        self._history.wake_up()

    def forget_history(self) -> None:
        """Cut the history: a watch from any version before now is answered with Gone."""
        self._history.forget()

    async def _called(self, verb: str, resource: Resource, name: str) -> None:
        self.calls.append((verb, resource, name))
        await asyncio.sleep(0)
        if verb in self.failing and (error := self.failing[verb](resource, name)) is not None:
            raise error

    def stored(self) -> Iterator[tuple[Resource, Object]]:
        """Every object as it is kept here, not to be changed."""
        return ((resource, obj) for resource, objects in self._objects.items() for obj in list(objects.values()))

    def _found(self, resource: Resource, namespace: str, name: str) -> Object:
        try:
            return self._objects[resource][_key(resource, namespace, name)]
        except KeyError:
            raise NotFound(f"{resource.plural} {name!r} not found") from None

    def _change(self, resource: Resource, before: Object, after: Object, subresource: str) -> Object:
        if subresource not in ("", "status"):
            raise Refused(f"{resource.plural} have no subresource {subresource!r} that can be written")
        if subresource:
            after = _copy(before) | {"status": after.get("status", {})}
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
        self._history.add(resource, before, after)
        self._objects[resource][_key(resource, meta.get("namespace", ""), meta["name"])] = after
        return _copy(after)

    def _remove(self, resource: Resource, obj: Object) -> None:
        meta = obj["metadata"]
        del self._objects[resource][_key(resource, meta.get("namespace", ""), meta["name"])]
        self._history.add(resource, obj, None)
        self._collect_garbage(meta["uid"])

    def _collect_garbage(self, owner: str) -> None:
        owned = [(resource, obj) for resource, obj in self.stored() if owner in _owners(obj)]
        alive = {obj["metadata"]["uid"] for _, obj in self.stored()} if owned else set()
        for resource, obj in owned:
            if not alive.intersection(_owners(obj)):
                self._remove(resource, obj)


def _key(resource: Resource, namespace: str, name: str) -> _Key:
    return namespace if resource.namespaced else "", name


def _copy(obj: Object) -> Object:
    """A copy as the wire makes it: what JSON cannot say does not arrive."""
    copy: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copy


def _owners(obj: Object) -> list[str]:
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()]
