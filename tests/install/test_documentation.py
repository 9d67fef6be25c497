"""docs/install.md has every value with its default, and no others."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lamina.install.values import GPU_NODES, Values, plain
from lamina.model.nodes import KEPT_OUT

DOC = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
SAID_IN_WORDS = {
    "agent.nodeSelectorTerms": "nodes with GPUs",
    "networkPolicy.extenderFrom": "Lamina's scheduler",
}
"""Defaults that are too long for a table."""


def rows(kind: Any, values: Any, prefix: str = "") -> Iterator[str]:
    schemas = msgspec.json.schema_components([kind])[1][kind.__name__]["properties"]
    for field in msgspec.structs.fields(kind):
        path, value = prefix + field.encode_name, values[field.encode_name]
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from rows(field.type, value, path + ".")
        else:
            text = value if isinstance(value, str) else json.dumps(value).replace('"', "")
            default = SAID_IN_WORDS.get(path) or (f"`{text}`" if text else "")
            yield f"| `{path}` | {schemas[field.encode_name]['title']} | {default} |"


def test_the_table_of_values() -> None:
    wanted = set(rows(Values, plain(Values())))
    there = set(re.findall(r"^\| `[a-zA-Z.]+` \|.*\|$", DOC, re.MULTILINE))
    assert sorted(there) == sorted(wanted)


def test_the_labels_that_decide_which_nodes_have_agents() -> None:
    for key, value in (*GPU_NODES, *((key, values[0]) for key, values in KEPT_OUT)):
        assert f"`{key}={value}`" in DOC
