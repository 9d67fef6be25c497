"""Discovery: groups, versions and resources, in the older and in the aggregated form."""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.access.reviews import REVIEWS
from lamina_lab.api.schema.resources import VERBS, ApiResource, Catalog
from lamina_lab.kubernetes.errors import no_such_path

VERSION: Object = {
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

# Subresources whose object has another kind than their resource, and their verbs.
_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "status": ("", "", "", ("get", "patch", "update")),
    "finalize": ("", "", "", ("update",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "exec": ("", "v1", "PodExecOptions", ("create", "get")),
    "log": ("", "v1", "Pod", ("get",)),
    "ephemeralcontainers": ("", "", "", ("get", "patch", "update")),
}


def versions() -> Object:
    """GET /api"""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _groups(catalog: Catalog) -> dict[str, list[str]]:
    groups = catalog.versions()
    for review in REVIEWS.values():
        groups.setdefault(review.group, [review.version])
    return groups


def _group(name: str, served: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def groups(catalog: Catalog) -> Object:
    """GET /apis"""
    listed = [_group(name, served) for name, served in _groups(catalog).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(catalog: Catalog, name: str) -> Object:
    """GET /apis/GROUP"""
    served = _groups(catalog).get(name)
    if not name or served is None:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, served)}


def resources(catalog: Catalog, group: str, version: str) -> Object:
    """GET /api/v1 and /apis/GROUP/VERSION"""
    found = catalog.within(group, version)
    reviews = [review for review in REVIEWS.values() if (review.group, review.version) == (group, version)]
    if not found and not reviews:
        raise no_such_path()
    listed: list[Object] = []
    for resource in found:
        listed.append(_entry(resource))
        listed.extend(_subresource(resource, name) for name in resource.subresources)
    for review in reviews:
        names = {"name": review.plural, "singularName": review.kind.lower(), "namespaced": review.namespaced}
        listed.append({**names, "kind": review.kind, "verbs": ["create"]})
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _entry(resource: ApiResource) -> Object:
    entry: Object = {
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


def _subresource(resource: ApiResource, name: str) -> Object:
    group, version, kind, verbs = _SUBRESOURCES[name]
    entry: Object = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    if kind:
        entry.update({"group": group, "version": version} if group else {})
    return {**entry, "kind": kind or resource.kind, "verbs": list(verbs)}


def aggregated(catalog: Catalog, core: bool) -> Object:
    """GET /api or /apis as one APIGroupDiscoveryList, which saves clients one request per group."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [_discovered(catalog, name, version) for version in served],
        }
        for name, served in _groups(catalog).items()
        if bool(name) != core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(catalog: Catalog, group: str, version: str) -> Object:
    entries: dict[str, Object] = {}
    for resource in resources(catalog, group, version)["resources"]:
        kind = {
            "group": resource.get("group", group),
            "version": resource.get("version", version),
            "kind": resource["kind"],
        }
        plural, slash, sub = resource["name"].partition("/")
        if slash:
            found: Any = entries[plural].setdefault("subresources", [])
            found.append({"subresource": sub, "responseKind": kind, "verbs": resource["verbs"]})
            continue
        entries[plural] = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if resource["namespaced"] else "Cluster",
            "singularResource": resource["singularName"],
            "verbs": resource["verbs"],
            **{key: resource[key] for key in ("shortNames", "categories") if key in resource},
        }
    return {"version": version, "resources": list(entries.values()), "freshness": "Current"}
