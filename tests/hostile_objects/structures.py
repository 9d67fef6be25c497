"""Values of a structural schema, up to its bounds."""

from random import Random
from typing import Any

import msgspec

from lamina.core.definitions import Schema
from tests.hostile_objects import values

_INTEGERS = (0, 1, 2, 7, 100, 1 << 15, 1 << 31, (1 << 53) + 1, (1 << 63) - 1)
_MAX_LIST = 40


def expanded(kind: type[msgspec.Struct]) -> Schema:
    """The JSON schema of a type with its references replaced. Unlike a structural schema it may have alternatives."""
    (reference,), components = msgspec.json.schema_components([kind])

    def replaced(schema: Any) -> Any:
        if isinstance(schema, list):
            return [replaced(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return replaced(components[schema["$ref"].removeprefix("#/$defs/")])
        return {key: replaced(value) for key, value in schema.items()}

    whole: Schema = replaced(reference)
    return whole


def structure(random: Random, schema: Schema) -> Any:
    """A value that is valid for the schema. Where it bounds nothing, the size of an object does."""
    if schema.get("nullable") and not random.randrange(6):
        return None
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "anyOf" in schema:
        return structure(random, random.choice(schema["anyOf"]))
    return _BY_TYPE[schema.get("type", "anything")](random, schema)


def _integer(random: Random, schema: Schema) -> int:
    least, most = schema.get("minimum", -(1 << 63)), schema.get("maximum", (1 << 63) - 1)
    number = random.choice((*_INTEGERS, least, most))
    return max(least, min(most, number))


def _string(random: Random, schema: Schema) -> str:
    longest = schema.get("maxLength", random.choice((253, 1000)))
    return random.choice((f"GPU-{random.randrange(4)}", values.text(random, longest)))[:longest]


def _array(random: Random, schema: Schema) -> list[Any]:
    """At times as long as is allowed, of the same item then."""
    longest = schema.get("maxItems", _MAX_LIST)
    item = structure(random, schema["items"])
    if not random.randrange(30) and len(str(item)) * longest < 1_000_000:
        return [item] * longest
    return [structure(random, schema["items"]) for _ in range(min(longest, random.choice((0, 1, 1, 2, 3))))]


def _object(random: Random, schema: Schema) -> dict[str, Any]:
    needed = schema.get("required", ())
    return {
        key: structure(random, inner)
        for key, inner in schema.get("properties", {}).items()
        if key in needed or random.randrange(2)
    }


_BY_TYPE = {
    "integer": _integer,
    "string": _string,
    "array": _array,
    "object": _object,
    "boolean": lambda random, _: bool(random.randrange(2)),
    "number": lambda random, _: random.choice((0.0, -1.5, 1e-300, 1e300)),
    "null": lambda random, _: None,
    "anything": lambda random, _: random.choice((None, True, [], {}, [[]], -1, values.text(random))),
}
