"""The JSONPath of printer columns: names, indices, wildcards and filters of the form ?(@.type=="Ready")."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)
      | \[(?P<index>-?\d+|\*)\]
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | \[\?\(@\.(?P<field>[\w.]+)\s*==\s*(?P<mark>['"]?)(?P<value>.*?)(?P=mark)\)\]""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step down: into a `name`, to an `index`, to all elements, or to those where `field` is `value`."""

    name: str | None = None
    index: int | None = None
    field: str | None = None
    value: str = ""


def parse(path: str) -> list[Step] | None:
    """None for a path that this small language cannot say; such a column stays empty."""
    steps, at = [], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        at = match.end()
        if match["name"] is not None:
            plain = re.sub(r"\\(.)", r"\1", match["name"])
            steps.append(Step() if plain == "*" else Step(name=plain))
        elif match["key"] is not None:
            steps.append(Step(name=match["key"]))
        elif match["field"] is not None:
            steps.append(Step(field=match["field"], value=match["value"]))
        else:
            steps.append(Step() if match["index"] == "*" else Step(index=int(match["index"])))
    return steps


def find(steps: list[Step] | None, root: Any) -> list[Any]:
    """All values at the end of the path."""
    if steps is None:
        return []
    found = [root]
    for step in steps:
        found = [value for each in found for value in _take(step, each)]
    return [each for each in found if each is not None]


def _take(step: Step, value: Any) -> list[Any]:
    if step.name is not None:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    elements = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if step.index is not None:
        return [elements[step.index]] if -len(elements) <= step.index < len(elements) else []
    if step.field is not None:
        wanted = [Step(name=each) for each in step.field.split(".")]
        return [each for each in elements if [text(found) for found in find(wanted, each)] == [step.value]]
    return elements


def text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    return str(value)
