"""The JSONPath of printer columns: names, indices, wildcards and filters of the form ?(@.type=="Ready")."""

import json
import re
from typing import Any

from msgspec import Struct

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)
      | \[(?P<index>-?\d+|\*)\]
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | \[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\)\]""",
    re.VERBOSE,
)


class PathStep(Struct, frozen=True):
    """One step down: into a `name`, to an `index`, to all elements, or to those where `field` is `value`."""

    name: str | None = None
    index: int | None = None
    field: str | None = None
    value: str = ""


def parse(path: str) -> list[PathStep] | None:
    """None if this subset of JSONPath does not support the path. Such a column stays empty."""
    steps, at = [], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        at = match.end()
        if match["name"] is not None:
            plain = re.sub(r"\\(.)", r"\1", match["name"])
            steps.append(PathStep() if plain == "*" else PathStep(name=plain))
        elif match["key"] is not None:
            steps.append(PathStep(name=match["key"]))
        elif match["field"] is not None:
            steps.append(PathStep(field=match["field"], value=match["value"]))
        else:
            steps.append(PathStep() if match["index"] == "*" else PathStep(index=int(match["index"])))
    return steps


def find(steps: list[PathStep] | None, root: Any) -> list[Any]:
    """All values at the end of the path."""
    if steps is None:
        return []
    found = [root]
    for step in steps:
        found = [value for node in found for value in _take(step, node)]
    return [node for node in found if node is not None]


def _take(step: PathStep, value: Any) -> list[Any]:
    if step.name is not None:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    elements = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if step.index is not None:
        return [elements[step.index]] if -len(elements) <= step.index < len(elements) else []
    if step.field is not None:
        wanted = [PathStep(name=name) for name in step.field.split(".")]
        return [element for element in elements if [text(found) for found in find(wanted, element)] == [step.value]]
    return elements


def text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    return str(value)
