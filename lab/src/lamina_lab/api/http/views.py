"""How a client sees stored objects: in the version it requested, whole, as metadata, or as table rows."""

from typing import Any

import msgspec

from lamina.ports.kube import Object
from lamina_lab.api.http.requests import View
from lamina_lab.api.printing import tables
from lamina_lab.api.schema.events import from_core, to_core
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.api.storage.history import Version


def to_client(resource: ApiResource, version: Version) -> Version:
    """The same object in the group and version that the client requested."""
    if version.obj.get("apiVersion") == resource.api_version:
        return version
    if resource.shares == "events":
        return Version(from_core(version.obj))
    return Version({**version.obj, "apiVersion": resource.api_version})


def from_client(resource: ApiResource, obj: Any) -> Any:
    """A client's object in its stored form."""
    return to_core(obj) if resource.shares == "events" and isinstance(obj, dict) else obj


def one(resource: ApiResource, version: Version, view: View, now: float) -> bytes:
    seen = to_client(resource, version)
    if view.table:
        return msgspec.json.encode(tables.table(resource, [seen.obj], view.include, now, seen.meta["resourceVersion"]))
    return msgspec.json.encode(_partial(seen.obj)) if view.partial else seen.json


def many(resource: ApiResource, versions: list[Version], view: View, now: float, revision: int) -> bytes:
    seen = [to_client(resource, version) for version in versions]
    if view.table:
        return msgspec.json.encode(
            tables.table(resource, [version.obj for version in seen], view.include, now, str(revision))
        )
    kind, api_version = f"{resource.kind}List", resource.api_version
    items = [version.json for version in seen]
    if view.partial:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        items = [msgspec.json.encode(_partial(version.obj)) for version in seen]
    meta = {"resourceVersion": str(revision)}
    head = msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": meta})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def change(resource: ApiResource, type_: str, version: Version, view: View, now: float, first: bool) -> bytes:
    """One line of a watch. A table has its columns in the first line only."""
    if view.table:
        seen = to_client(resource, version)
        body = tables.table(resource, [seen.obj], view.include, now, seen.meta["resourceVersion"])
        if not first:
            body["columnDefinitions"] = []
        encoded = msgspec.json.encode(body)
    else:
        encoded = one(resource, version, view, now)
    return b'{"type":"' + type_.encode() + b'","object":' + encoded + b"}\n"


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
