"""How stored objects look to a client: in the version it named, whole, in part, or as rows of a table."""

from __future__ import annotations

from typing import Any

import msgspec

from lamina.lab.api import tables
from lamina.lab.api.events import from_core, to_core
from lamina.lab.api.history import Version
from lamina.lab.api.requests import View
from lamina.lab.api.resources import Resource
from lamina.lab.api.status import Obj


def outward(resource: Resource, version: Version) -> Version:
    """The same object under the group and version that the client named."""
    if version.obj.get("apiVersion") == resource.api_version:
        return version
    if resource.shares == "events":
        return Version(from_core(version.obj))
    return Version({**version.obj, "apiVersion": resource.api_version})


def inward(resource: Resource, obj: Any) -> Any:
    """A client's object as it is stored."""
    return to_core(obj) if resource.shares == "events" and isinstance(obj, dict) else obj


def one(resource: Resource, version: Version, view: View, now: float) -> bytes:
    seen = outward(resource, version)
    if view.table:
        return msgspec.json.encode(tables.table(resource, [seen.obj], view.include, now, seen.meta["resourceVersion"]))
    return msgspec.json.encode(_partial(seen.obj)) if view.partial else seen.json


def many(resource: Resource, versions: list[Version], view: View, now: float, revision: int) -> bytes:
    seen = [outward(resource, each) for each in versions]
    if view.table:
        return msgspec.json.encode(
            tables.table(resource, [each.obj for each in seen], view.include, now, str(revision))
        )
    kind, api_version = f"{resource.kind}List", resource.api_version
    items = [each.json for each in seen]
    if view.partial:
        kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        items = [msgspec.json.encode(_partial(each.obj)) for each in seen]
    meta = {"resourceVersion": str(revision)}
    head = msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": meta})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def change(resource: Resource, type_: str, version: Version, view: View, now: float, first: bool) -> bytes:
    """One line of a watch. A table names its columns in the first line only."""
    if view.table:
        seen = outward(resource, version)
        body = tables.table(resource, [seen.obj], view.include, now, seen.meta["resourceVersion"])
        if not first:
            body["columnDefinitions"] = []
        encoded = msgspec.json.encode(body)
    else:
        encoded = one(resource, version, view, now)
    return b'{"type":"' + type_.encode() + b'","object":' + encoded + b"}\n"


def _partial(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
