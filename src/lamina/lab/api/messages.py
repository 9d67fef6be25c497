"""The table of Kubernetes' messages, read once: by number for protobuf, by name for JSON."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from lamina.lab.api.wire_fields import FIELDS

_FIELD = re.compile(r"^(\w+)=(\d+):(\[\]|\{\}|)([\w-]+)([*!]?)$")


@dataclass(frozen=True, slots=True)
class Field:
    """A field as wire_fields.py describes it."""

    name: str
    number: int
    shape: str
    type: str
    mark: str


@functools.cache
def messages() -> dict[str, list[Field]]:
    """All messages by name."""
    found: dict[str, list[Field]] = {}
    for entry in re.split(r"\n(?! )", FIELDS.strip()):
        name, _, rest = entry.partition(":")
        matches = (_FIELD.match(each) for each in rest.split())
        found[name] = [Field(m[1], int(m[2]), m[3], m[4], m[5]) for m in matches if m]
    return found


@functools.cache
def by_number(message: str) -> dict[int, Field]:
    return {field.number: field for field in messages()[message]}


@functools.cache
def by_name(message: str) -> dict[str, Field]:
    """As JSON has them: the fields of an inner message marked `!` stand beside its own."""
    found: dict[str, Field] = {}
    for field in messages()[message]:
        found.update(by_name(field.type) if field.mark == "!" else {field.name: field})
    return found
