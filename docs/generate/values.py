"""The page of the installation's values, from their types."""

from collections.abc import Iterator
from typing import Any

from docs.generate.fields import fields
from docs.generate.markdown import code, page, sentence, table
from lamina.install.values import Values

_TOO_LONG = {"agent.nodeSelectorTerms": "nodes with GPUs", "networkPolicy.extenderFrom": "Lamina's scheduler"}
_INTRODUCTION = """
Values of `lamina install --set KEY=VALUE` and of the Helm chart. [Install](../how-to/install.md#values) has the rules
for merging them.
"""


def pages() -> Iterator[tuple[str, str]]:
    listed = table(("value", "meaning", "allowed", "default"), rows(Values))
    yield "chart-values.md", page("Chart values", "src/lamina/install/values.py", _INTRODUCTION, listed)


def rows(struct: Any, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    for field in fields(struct):
        path = prefix + field.name
        if field.inner is not None:
            yield from rows(field.inner, f"{path}.")
        else:
            default = _TOO_LONG.get(path) or code(field.default)
            yield code(path), sentence(field.meaning), field.allowed, default
