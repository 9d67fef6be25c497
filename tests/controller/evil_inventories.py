"""Inventories of a node whose agent lies: generated from the wire type, one field after the other.

A list of structures gets one for each thing that a lie could be about, its names and UIDs put where fields of that name
are. A field that has no such name, as a new one may have, gets all of these strings in turn.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from lamina.core.gpus import Inventory
from lamina.core.quantities import MAX_MIB
from lamina.ports.kube import Object

EVIL = "evil"
HUGE, SMALL = MAX_MIB, 0
Subject = Mapping[str, str]
"""What a lie is about: strings by the names of fields."""


def fields() -> list[str]:
    """All fields of an Inventory."""
    return list(Inventory.__struct_fields__)


def inventory(field: str, subjects: list[Subject], number: int) -> Object:
    """An Inventory of EVIL that lies in this field, with these numbers."""
    hint = get_type_hints(Inventory, include_extras=True)[field]
    wire = dict(zip(Inventory.__struct_fields__, Inventory.__struct_encode_fields__, strict=True))
    value = _list(hint, field, subjects, number) if _is_list(hint) else next(_values(hint, field, subjects[0], number))
    return {"metadata": {"name": EVIL}, "spec": {"node": EVIL, wire[field]: value}}


def _list(hint: Any, field: str, subjects: list[Subject], number: int) -> list[Any]:
    """An element for each lie, as many as the type allows."""
    (element, *_), most = get_args(_plain(hint)), _most(hint)
    found: dict[bytes, Any] = {}
    for subject in subjects:
        for value in _values(element, field, subject, number):
            found[msgspec.json.encode(value)] = value
    return list(found.values())[:most]


def _values(hint: Any, field: str, subject: Subject, number: int) -> Iterator[Any]:
    """Values of a type that are lies about the subject."""
    plain = _plain(hint)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        yield from _structures(plain, subject, number)
    elif _is_list(hint):
        yield list(_values(get_args(plain)[0], field, subject, number))[: _most(hint)]
    elif isinstance(plain, type) and issubclass(plain, StrEnum):
        yield from map(str, plain)
    elif plain is bool:
        yield True
    elif plain is int:
        yield number
    elif plain is str:
        yield from ([subject[field]] if field in subject else subject.values())
    else:
        yield from _values(next(each for each in get_args(plain) if each is not type(None)), field, subject, number)


def _structures(kind: type[msgspec.Struct], subject: Subject, number: int) -> Iterator[Object]:
    """Structures whose fields have their first values, and for each further value of a field one more."""
    hints = get_type_hints(kind, include_extras=True)
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    choices = {name: list(_values(hint, name, subject, number)) for name, hint in hints.items()}
    first = {names[name]: values[0] for name, values in choices.items() if values}
    yield first
    for name, values in choices.items():
        for value in values[1:]:
            yield first | {names[name]: value}


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_list(hint: Any) -> bool:
    return get_origin(_plain(hint)) in (tuple, list)


def _most(hint: Any) -> int | None:
    metas = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((meta.max_length for meta in metas if getattr(meta, "max_length", None)), None)
