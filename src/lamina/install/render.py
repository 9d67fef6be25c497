"""Rendering a description for given values: the objects as plain data."""

from collections.abc import Iterable
from typing import Any

from lamina.install.terms import Each, Setting, Term, When
from lamina.ports.kube import Object

_NOTHING = object()


def render(description: Iterable[Any], setting: Setting) -> list[Object]:
    """The objects for this setting, in order."""
    return [each for one in description if (each := _render(one, setting)) is not _NOTHING]


def _render(part: Any, setting: Setting) -> Any:
    if isinstance(part, When):
        chosen = part.then if part.condition.holds(setting) else part.otherwise
        return _NOTHING if chosen is None else _render(chosen, setting)
    if isinstance(part, Term):
        return part.value(setting)
    if isinstance(part, dict):
        entries = ((key, _render(each, setting)) for key, each in part.items())
        return {key: each for key, each in entries if each is not _NOTHING}
    if isinstance(part, list):
        return [each for item in part for each in _items(item, setting)]
    return part


def _items(item: Any, setting: Setting) -> list[Any]:
    if isinstance(item, Each):
        return list(item.of.value(setting))
    each = _render(item, setting)
    return [] if each is _NOTHING else [each]
