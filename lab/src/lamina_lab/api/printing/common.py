"""What all tables share: columns, and cells of several kinds."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.api.printing.ages import age


class Column(Struct, frozen=True):
    """A column with `priority` above 0 is shown with -o wide only."""

    name: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def definition(self) -> Object:
        form = "name" if self.name == "Name" else ""
        description = self.description or self.name
        return {
            "name": self.name,
            "type": self.type,
            "format": form,
            "description": description,
            "priority": self.priority,
        }


class Layout(Struct, frozen=True):
    columns: tuple[Column, ...]
    cells: Callable[[Object, float], list[Any]]


def column(name: str, type_: str = "string") -> Column:
    return Column(name, type_)


def wide(name: str) -> Column:
    return Column(name, "string", 1)


def name(obj: Object) -> str:
    found: str = obj["metadata"]["name"]
    return found


def own_age(obj: Object, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def conditions(obj: Object) -> dict[str, Object]:
    return {condition.get("type", ""): condition for condition in (obj.get("status") or {}).get("conditions") or []}


def selector_text(selector: Object | None) -> str:
    """A LabelSelector as printers show it."""
    parts = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for expression in (selector or {}).get("matchExpressions") or []:
        values = ",".join(expression.get("values") or [])
        shown = {"In": f"{expression['key']} in ({values})", "NotIn": f"{expression['key']} notin ({values})"}
        shown |= {"Exists": expression["key"], "DoesNotExist": f"!{expression['key']}"}
        parts.append(shown.get(expression.get("operator", ""), expression["key"]))
    return ",".join(parts) or "<none>"
