"""JSON documents in which one value is not what its reader expects."""

from collections.abc import Iterator
from typing import Any

ODD_VALUES = (None, True, -1, "\x00\n", [], [[]], {}, {"name": 3})


def distorted(document: Any) -> Iterator[Any]:
    """Copies of the document: in each, one value at any depth is replaced by an odd one, or left out."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield {other: each for other, each in document.items() if other != key}
            for changed in distorted(value):
                yield {**document, key: changed}
    elif isinstance(document, list):
        for index, value in enumerate(document):
            for changed in distorted(value):
                yield [*document[:index], changed, *document[index + 1 :]]
    yield from ODD_VALUES


def nested(depth: int) -> str:
    """JSON that is nested too deeply for most readers."""
    return "[" * depth + "]" * depth
