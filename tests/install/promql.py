"""What a query in PromQL reads: the names of series, and the labels by which it selects and groups them."""

import re
from collections.abc import Set
from typing import NamedTuple

_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_RANGE = re.compile(r"\[[^]]*\]")
_OFFSET = re.compile(r"\boffset\s+\w+")
_SELECTOR = re.compile(r"(?<![\w:])([A-Za-z_:][\w:]*)\s*(\{[^}]*\})?(?!\s*\()(?![\w:])")
_MATCHED = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_WORDS = {"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "group_left", "group_right"}


class Read(NamedTuple):
    """`matched` are the labels that each series is selected by, `grouped` those of the whole query."""

    matched: dict[str, Set[str]]
    grouped: Set[str]


def read(query: str) -> Read:
    """What the query reads. It must have no label values with braces."""
    grouped = {label.strip() for labels in _GROUPING.findall(query) for label in labels.split(",") if label.strip()}
    rest = _OFFSET.sub("", _RANGE.sub("", _GROUPING.sub("", query)))
    matched: dict[str, Set[str]] = {}
    for name, braces in _SELECTOR.findall(rest):
        if name not in _WORDS:
            matched[name] = {*matched.get(name, ()), *_MATCHED.findall(braces)}
    return Read(matched, grouped)
