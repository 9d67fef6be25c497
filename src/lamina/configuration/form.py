"""The type of a Configuration: its groups, the sections of all dialects, and what dialects add to lists.

The API describes what does not depend on dialects. The rest follows from the registry, so that a document is checked
strictly, in one step and with one JSON schema, whatever dialects there are.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from lamina.core.config import KIND, Config
from lamina.core.config_fields import SCHEDULERS, Schedulers
from lamina.core.dialect_fields import Compatibility, Dialects
from lamina.core.field_types import doc, must_be
from lamina.dialects import registry
from lamina.dialects.protocol import Dialect, Listed

LISTS = {"annotations": "listed_annotations", "resources": "listed_resources", "metrics": "listed_metrics"}
"""The lists of `compatibility`, and which attribute of a dialect says how they name it."""


class Form(NamedTuple):
    """The types of a Configuration and of its groups that depend on dialects."""

    configuration: type[Config]
    dialects: type[Dialects]
    compatibility: type[Compatibility]
    schedulers: type[Schedulers]


def form() -> Form:
    """The form with all registered dialects."""
    return _form(registry.DIALECTS)


@cache
def _form(every: tuple[Dialect, ...]) -> Form:
    dialects = _extended(Dialects, _sections(every))
    compatibility = _extended(Compatibility, _lists(every))
    schedulers = _extended(Schedulers, _served(every))
    groups = {"dialects": dialects, "compatibility": compatibility, "schedulers": schedulers}
    fields = [
        (field.name, Annotated[groups[field.name], _documentation(field.type)], groups[field.name]())
        for field in msgspec.structs.fields(Config)
        if field.name in groups
    ]
    return Form(_extended(Config, fields, KIND), dialects, compatibility, schedulers)


def _sections(every: Sequence[Dialect]) -> Iterator[tuple[str, Any, Any]]:
    for dialect in every:
        if dialect.section is not None:
            summary = (dialect.section.__doc__ or "").partition("\n")[0]
            yield dialect.name, Annotated[dialect.section, doc(summary)], dialect.section()


def _lists(every: Sequence[Dialect]) -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(Compatibility):
        if field.name not in LISTS:
            continue
        listed: list[Listed] = [one for dialect in every if (one := getattr(dialect, LISTS[field.name]))]
        names = tuple(one.name for one in listed)
        name: Any = Literal.__getitem__(names)
        choice = Annotated[tuple[name, ...], must_be(f"a list of {_enumerate(names)}"), _documentation(field.type)]
        yield field.name, choice, tuple(one.name for one in listed if one.by_default)


def _served(every: Sequence[Dialect]) -> Iterator[tuple[str, Any, Any]]:
    names = dict.fromkeys((*SCHEDULERS, *(name for dialect in every for name in dialect.schedulers)))
    for field in msgspec.structs.fields(Schedulers):
        if field.name == "served":
            yield field.name, field.type, tuple(names)


def _extended(group: Any, fields: Any, name: str = "") -> Any:
    """The group with these fields, in its place in the order of fields where it has them already."""
    return msgspec.defstruct(
        name or group.__name__,
        list(fields),
        bases=(group,),
        namespace={"__doc__": group.__doc__},
        frozen=True,
        kw_only=True,
    )


def _documentation(kind: Any) -> msgspec.Meta:
    """What documents a field of this type."""
    notes: tuple[msgspec.Meta, ...] = get_args(kind)[1:]
    return next(note for note in notes if note.extra and "documents" in note.extra)


def _enumerate(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
