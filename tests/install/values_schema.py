"""The schema of the chart's values, so that Helm refuses what `lamina install` refuses.

Below `config` it has the schemas of the configuration: of Lamina's own form for a document with `apiVersion`, else of
the keys of other systems, next to which Lamina's own may stand.
"""

from typing import Any

import msgspec

from docs.generate.configuration import without_indentation
from lamina.configuration.form import form
from lamina.configuration.importers.unversioned import DocumentWithChart
from lamina.install.values import Values

_HEADER = ("apiVersion", "kind")
_OWN, _OF_OTHERS = "config.Configuration", "config.DocumentWithChart"


def values_schema() -> dict[str, Any]:
    """The schema. `global` is Helm's own. Every value has a default, so a missing one was removed by null."""
    schema = msgspec.json.schema(Values)
    for definition in schema["$defs"].values():
        definition["required"] = definition["required"] or list(definition["properties"])
    values = schema["$defs"]["Values"]["properties"]
    values["global"] = {"type": "object"}
    values["config"] |= {
        "if": {"anyOf": [{"required": [key]} for key in _HEADER]},
        "then": {"$ref": f"#/$defs/{_OWN}"},
        "else": {"$ref": f"#/$defs/{_OF_OTHERS}"},
    }
    schema["$defs"] |= _of_configurations()
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    return schema


def _of_configurations() -> dict[str, Any]:
    """The definitions, in which other keys are not allowed."""
    _, components = msgspec.json.schema_components(
        [form().configuration, DocumentWithChart], ref_template="#/$defs/config.{name}"
    )
    definitions = {f"config.{name}": without_indentation(each) for name, each in components.items()}
    for definition in definitions.values():
        definition["additionalProperties"] = False
    own, of_others = definitions[_OWN]["properties"], definitions[_OF_OTHERS]["properties"]
    own |= {name: _or_nothing(each) for name, each in own.items() if name not in _HEADER}
    of_others |= {name: _or_nothing(each) for name, each in of_others.items()}
    of_others |= {name: each for name, each in own.items() if name not in _HEADER}
    return definitions


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    """A key may be there without a value. Helm's messages about `anyOf` would name both."""
    (something,) = (each for each in schema.pop("anyOf", [{}]) if each != {"type": "null"})
    return {"if": {"type": "null"}, "else": schema | something}
