"""The text of YAML documents as plain data; whatever is wrong with a text is one sentence.

Keys must be unique and usable as keys: YAML readers silently drop all but the last of equal ones. An anchor may be
repeated, but not inside itself, and not until a few lines stand for millions of values.
"""

import json
from collections.abc import Hashable
from typing import Any

import yaml

from lamina.errors import BadInput

_MERGE = "tag:yaml.org,2002:merge"
_MAX_VALUES = 1_000_000
"""In one document, repetitions included. A dump of 5000 nodes and their pods is JSON."""
_UNREADABLE = (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What PyYAML raises for texts: besides its own errors, those of values that do not suit their tag, as in `!!int x`."""


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a duplicate key in a mapping is an error."""

    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._checked: set[yaml.Node] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace `<<` by the keys of other mappings. Those may occur again in the mapping, whose own take precedence.

        So its own keys are compared before.
        """
        if node not in self._checked:
            self._checked.add(node)
            self._check_keys(node)
        super().flatten_mapping(node)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if key_node.tag == _MERGE else self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise BadInput(f"line {key_node.start_mark.line + 1}: a key must be a string, got {shown(key)}")
            if key in seen:
                raise BadInput(f"line {key_node.start_mark.line + 1}: duplicate key {shown(key)}; write it once")
            seen.add(key)


def load_documents(text: str | bytes, where: str) -> list[Any]:
    """All documents in the text. Raises BadInput."""
    try:
        documents = list(yaml.load_all(text, Loader=_UniqueKeys))
        _check_size(documents)
    except BadInput as problem:
        raise BadInput(f"{where}, {problem}") from problem
    except _UNREADABLE as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        reason = " ".join(str(getattr(problem, "problem", None) or problem).split())
        raise BadInput(f"{where}{line}: invalid YAML: {reason}") from problem
    return documents


def load_value(text: str, where: str) -> Any:
    """The one document in the text, None for an empty text. Raises BadInput."""
    documents = load_documents(text, where)
    if len(documents) > 1:
        raise BadInput(f"{where} must be one YAML document, got {len(documents)}")
    return documents[0] if documents else None


def load_mapping(text: str, where: str) -> dict[str, Any]:
    """The mapping that the text holds, empty for an empty text. Raises BadInput."""
    loaded = load_value(text, where)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BadInput(f"{where}: the document must be a mapping, got {_kind(loaded)}")
    return loaded


def shown(value: Any) -> str:
    """A value as in JSON, for an error message."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except TypeError:
        return repr(value)


def _check_size(documents: list[Any]) -> None:
    """Raises ValueError where an anchor contains itself, or where there are too many values."""
    sizes: dict[int, int] = {}

    def size_of(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = _MAX_VALUES  # what a value that contains itself comes to
            inside = value.values() if isinstance(value, dict) else value
            sizes[id(value)] = 1 + sum(size_of(each) for each in inside)
        return sizes[id(value)]

    if size_of(documents) >= _MAX_VALUES:
        raise ValueError("an anchor contains itself, or the document has too many values")


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", int: "a number", float: "a number", bool: "true or false"}.get(
        type(value), type(value).__name__
    )
