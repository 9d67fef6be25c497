"""From a wire type to the schema of a CustomResourceDefinition.

Kubernetes wants structural schemas: no references, a type everywhere, and no defaults, which the API server
would store. The JSON schema that msgspec makes is rewritten to that.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

Schema = dict[str, Any]

_DROPPED = ("title", "default", "$defs")


def structural_schema(kind: type[msgspec.Struct]) -> Schema:
    """The structural schema of a type."""
    (reference,), components = msgspec.json.schema_components([kind])
    return _structural(reference, components)


def _structural(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """The schema with references resolved, `null` as nullable, and a type for every enumeration."""
    rest = {key: value for key, value in schema.items() if key not in (*_DROPPED, "$ref", "anyOf", "enum")}
    if "$ref" in schema:
        return _structural(components[schema["$ref"].removeprefix("#/$defs/")], components) | rest
    if "anyOf" in schema:
        (option,) = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return _structural(option, components) | {"nullable": True} | rest
    if "enum" in schema:
        rest.pop("description", None)  # of the enumeration; that of the field comes with the reference
        choices = [choice for choice in schema["enum"] if choice is not None]
        nullable = {"nullable": True} if None in schema["enum"] else {}
        return rest | {"type": "string", "enum": choices} | nullable
    if "description" in rest:
        rest["description"] = " ".join(rest["description"].split())
    if "properties" in rest:
        rest["properties"] = {name: _structural(inner, components) for name, inner in rest["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(rest.get(inner), dict):
            rest[inner] = _structural(rest[inner], components)
    return rest
