"""What a request asks for, read from its address and headers, before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lamina.lab.api.status import bad_request


@dataclass(frozen=True, slots=True)
class Address:
    """A resource's place in the URL space. Empty strings stand for what is not there."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def address(path: str) -> Address | None:
    """The address in a path under /api or /apis; None for paths of discovery."""
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
    return Address(group, version, namespace, padded[0], padded[1], "/".join(rest[2:]))


@dataclass(frozen=True, slots=True)
class View:
    """How the client wants to see objects: whole, as a table, or their metadata alone."""

    table: bool = False
    partial: bool = False
    include: str = "Metadata"
    discovery: bool = False


def view(accept: str, query: Mapping[str, str]) -> View:
    """The first kind among those accepted that the API knows."""
    for each in accept.split(","):
        media, *rest = (part.strip() for part in each.split(";"))
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
    """None where it is not given. Raises 400 for what is no whole number."""
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
