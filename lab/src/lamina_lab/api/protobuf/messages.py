"""The parsed table of Kubernetes' messages: by number for protobuf, by name for JSON."""

import functools
import re

from msgspec import Struct

from lamina_lab.api.protobuf.fields import FIELDS

_FIELD = re.compile(r"^(\w+)=(\d+):(\[\]|\{\}|)([\w-]+)([*!]?)$")


class Field(Struct, frozen=True):
    """A field as described in fields.py."""

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
        matches = (_FIELD.match(entry) for entry in rest.split())
        found[name] = [Field(m[1], int(m[2]), m[3], m[4], m[5]) for m in matches if m]
    return found


@functools.cache
def by_number(message: str) -> dict[int, Field]:
    return {field.number: field for field in messages()[message]}


@functools.cache
def by_name(message: str) -> dict[str, Field]:
    """Fields as JSON has them: those of an inner message marked `!` are next to the outer ones."""
    found: dict[str, Field] = {}
    for field in messages()[message]:
        found.update(by_name(field.type) if field.mark == "!" else {field.name: field})
    return found
