"""What a request addresses and accepts, from its path and headers."""

from collections.abc import Mapping

from msgspec import Struct

from lamina_lab.api.access.rbac import Attributes
from lamina_lab.kubernetes.errors import bad_request


class ResourcePath(Struct, frozen=True):
    """A resource's place in the URL space. Missing parts are empty strings."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def address(path: str) -> ResourcePath | None:
    """The address in a path under /api or /apis; None for discovery paths."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        group, version, rest = "", parts[1] if len(parts) > 1 else "", parts[2:]
    else:
        group, version, rest = (parts[1], parts[2], parts[3:]) if len(parts) > 3 else ("", "", [])
    if not rest:
        return None
    namespace = ""
    whole_namespace = rest[0] == "namespaces" and (len(rest) < 3 or rest[2] in ("status", "finalize"))
    if rest[0] == "namespaces" and not whole_namespace:
        namespace, rest = rest[1], rest[2:]
    padded = [*rest, "", ""]
    return ResourcePath(group, version, namespace, padded[0], padded[1], "/".join(rest[2:]))


_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def attributes(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """What a request does, as roles name it."""
    verb, place = _VERBS.get(method, method.lower()), address(path)
    if place is None:
        return Attributes(verb, path=path)
    if not place.name and verb == "get":
        verb = "watch" if flag(query, "watch") else "list"
    elif not place.name and verb == "delete":
        verb = "deletecollection"
    resource = f"{place.plural}/{place.subresource}" if place.subresource else place.plural
    namespace = place.name if (place.group, place.plural) == ("", "namespaces") else place.namespace
    return Attributes(verb, place.group, resource, place.name, namespace)


class View(Struct, frozen=True):
    """The form in which the client wants objects: whole, as a table, or metadata only."""

    table: bool = False
    partial: bool = False
    include: str = "Metadata"
    discovery: bool = False


def view(accept: str, query: Mapping[str, str]) -> View:
    """The first accepted form that the API supports."""
    for accepted in accept.split(","):
        media, *rest = (part.strip() for part in accepted.split(";"))
        options = dict(part.split("=", 1) for part in rest if "=" in part)
        kind = options.get("as", "")
        if media not in ("application/json", "*/*", "application/*", ""):
            continue
        if kind == "Table" and options.get("g") == "meta.k8s.io":
            return View(table=True, include=query.get("includeObject", "Metadata"))
        if kind.startswith("PartialObjectMetadata"):
            return View(partial=True)
        if kind == "APIGroupDiscoveryList" and options.get("v") == "v2":
            return View(discovery=True)
        if not kind:
            return View()
    return View()


def flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def number(query: Mapping[str, str], name: str) -> int | None:
    """None if it is missing. Raises 400 if it is not an integer."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f"{name} must be a whole number, found {text!r}") from None


def dry_run(query: Mapping[str, str]) -> bool:
    text = query.get("dryRun", "")
    if text not in ("", "All"):
        raise bad_request(f'dryRun: Unsupported value: "{text}": supported values: "All"')
    return text == "All"
