"""Discovery: which groups, versions and resources there are, in the older and in the aggregated form."""

from __future__ import annotations

from typing import Any

from lamina.lab.api.resources import VERBS, Catalogue, Resource
from lamina.lab.api.reviews import REVIEWS
from lamina.lab.api.status import Obj, no_such_path

VERSION: Obj = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+lamina-lab",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

# Subresources with an object of another kind than their resource's, and the verbs they take.
_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "status": ("", "", "", ("get", "patch", "update")),
    "finalize": ("", "", "", ("update",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "log": ("", "v1", "Pod", ("get",)),
}


def versions() -> Obj:
    """GET /api"""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _groups(catalogue: Catalogue) -> dict[str, list[str]]:
    groups = catalogue.versions()
    for each in REVIEWS.values():
        groups.setdefault(each.group, [each.version])
    return groups


def _group(name: str, served: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def groups(catalogue: Catalogue) -> Obj:
    """GET /apis"""
    listed = [_group(name, served) for name, served in _groups(catalogue).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(catalogue: Catalogue, name: str) -> Obj:
    """GET /apis/GROUP"""
    served = _groups(catalogue).get(name)
    if not name or served is None:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, served)}


def resources(catalogue: Catalogue, group: str, version: str) -> Obj:
    """GET /api/v1 and /apis/GROUP/VERSION"""
    found = catalogue.within(group, version)
    reviews = [each for each in REVIEWS.values() if (each.group, each.version) == (group, version)]
    if not found and not reviews:
        raise no_such_path()
    listed: list[Obj] = []
    for each in found:
        listed.append(_entry(each))
        listed.extend(_subresource(each, name) for name in each.subresources)
    for review in reviews:
        names = {"name": review.plural, "singularName": review.kind.lower(), "namespaced": review.namespaced}
        listed.append({**names, "kind": review.kind, "verbs": ["create"]})
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _entry(resource: Resource) -> Obj:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(VERBS),
    }
    if resource.short:
        entry["shortNames"] = list(resource.short)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _subresource(resource: Resource, name: str) -> Obj:
    group, version, kind, verbs = _SUBRESOURCES[name]
    entry: Obj = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    if kind:
        entry.update({"group": group, "version": version} if group else {})
    return {**entry, "kind": kind or resource.kind, "verbs": list(verbs)}


def aggregated(catalogue: Catalogue, core: bool) -> Obj:
    """GET /api or /apis as one APIGroupDiscoveryList, which saves clients a request per group."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [_discovered(catalogue, name, version) for version in served],
        }
        for name, served in _groups(catalogue).items()
        if bool(name) != core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(catalogue: Catalogue, group: str, version: str) -> Obj:
    entries: dict[str, Obj] = {}
    for each in resources(catalogue, group, version)["resources"]:
        kind = {"group": each.get("group", group), "version": each.get("version", version), "kind": each["kind"]}
        plural, slash, sub = each["name"].partition("/")
        if slash:
            found: Any = entries[plural].setdefault("subresources", [])
            found.append({"subresource": sub, "responseKind": kind, "verbs": each["verbs"]})
            continue
        entries[plural] = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if each["namespaced"] else "Cluster",
            "singularResource": each["singularName"],
            "verbs": each["verbs"],
            **{key: each[key] for key in ("shortNames", "categories") if key in each},
        }
    return {"version": version, "resources": list(entries.values()), "freshness": "Current"}
