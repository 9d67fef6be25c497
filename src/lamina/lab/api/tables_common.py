"""What all tables share: columns, and cells that several kinds have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lamina.lab.api.ages import age
from lamina.lab.api.status import Obj


@dataclass(frozen=True, slots=True)
class Column:
    """`priority` above 0 shows with -o wide alone."""

    name: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def definition(self) -> Obj:
        form = "name" if self.name == "Name" else ""
        description = self.description or self.name
        return {
            "name": self.name,
            "type": self.type,
            "format": form,
            "description": description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Layout:
    columns: tuple[Column, ...]
    cells: Callable[[Obj, float], list[Any]]


def column(name: str, type_: str = "string") -> Column:
    return Column(name, type_)


def wide(name: str) -> Column:
    return Column(name, "string", 1)


def name(obj: Obj) -> str:
    found: str = obj["metadata"]["name"]
    return found


def own_age(obj: Obj, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def conditions(obj: Obj) -> dict[str, Obj]:
    return {each.get("type", ""): each for each in (obj.get("status") or {}).get("conditions") or []}


def selector_text(selector: Obj | None) -> str:
    """A LabelSelector as printers show it."""
    parts = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for each in (selector or {}).get("matchExpressions") or []:
        values = ",".join(each.get("values") or [])
        shown = {"In": f"{each['key']} in ({values})", "NotIn": f"{each['key']} notin ({values})"}
        shown |= {"Exists": each["key"], "DoesNotExist": f"!{each['key']}"}
        parts.append(shown.get(each.get("operator", ""), each["key"]))
    return ",".join(parts) or "<none>"
