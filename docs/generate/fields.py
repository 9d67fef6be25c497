"""What a msgspec struct says of its fields: their names as written, what they mean, what is allowed, their defaults.

The meaning of a field is the title of its type, or the text that stands below it in its class, as for attributes.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from lamina.configuration.strict import must_be


class Field(NamedTuple):
    """`inner` is the struct of a nested section; `required` fields have no default."""

    name: str
    meaning: str
    allowed: str
    default: str
    required: bool
    inner: Any | None


def fields(struct: Any) -> Iterator[Field]:
    properties = _schema(struct)
    for field in msgspec.structs.fields(struct):
        schema = properties.get(field.encode_name, {})
        meaning = schema.get("title") or _texts(struct).get(field.name, "")
        yield Field(
            name=field.encode_name,
            meaning=meaning,
            allowed=must_be(field.type) or _allowed(schema),
            default=_default(field),
            required=field.required,
            inner=field.type if _is_struct(field.type) else None,
        )


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _schema(struct: Any) -> dict[str, Any]:
    components = msgspec.json.schema_components([struct])[1]
    return dict(components[struct.__name__].get("properties", {}))


def _allowed(schema: dict[str, Any]) -> str:
    if "description" in schema:
        return str(schema["description"])
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    alternatives = [_allowed(each) for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if any(alternatives):
        return ", or ".join(filter(None, alternatives))
    return {"boolean": "true or false", "integer": "a whole number", "string": "a text"}.get(schema.get("type", ""), "")


def _default(field: Any) -> str:
    if field.required:
        return ""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is msgspec.UNSET or value is None:
        return ""
    value = msgspec.to_builtins(value)
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


@cache
def _texts(struct: Any) -> dict[str, str]:
    """The texts below attributes of the class and of the classes that it extends, by attribute."""
    found: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        if kind.__module__.startswith("lamina"):
            found |= _texts_of(kind)
    return found


def _texts_of(kind: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for above, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(above, ast.AnnAssign)
            and isinstance(above.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            found[above.target.id] = inspect.cleandoc(below.value.value)
    return found
