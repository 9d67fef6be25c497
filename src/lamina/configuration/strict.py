"""Reading plain data into typed structs so that nothing is misread and every refusal is one sentence.

msgspec checks types and ranges, but its messages are written for programmers. Here the path of its error leads to the
field, and the field's type says what it must be. Unknown keys are refused with the nearest known one.
"""

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from lamina.configuration.yaml_documents import shown
from lamina.errors import BadInput
from lamina.name_hints import closest, nearest

T = TypeVar("T", bound=msgspec.Struct)


def decode(loaded: Mapping[str, Any], kind: type[T], where: str) -> T:
    """`loaded` as a struct of type `kind`. Raises BadInput with the path, what the value must be, and the value."""
    _refuse_unknown(loaded, kind, where, ())
    try:
        return msgspec.convert(loaded, kind)
    except msgspec.ValidationError as problem:
        path = _path(str(problem), loaded)
        missing = re.match(r"Object missing required field `(.+?)`", str(problem))
        if missing is not None:
            raise BadInput(f"{where}: {_spell((*path, missing[1]))} is required") from problem
        expected, depth = _expected(kind, path)
        at = path[:depth] if expected else path
        expected = expected or ("a list" if "Expected `array`" in str(problem) else "a mapping")
        name = _spell(at) or "the document"
        raise BadInput(f"{where}: {name} must be {expected}, got {shown(_value(loaded, at))}") from problem


def without_empty_keys(document: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The document without known keys that have no value, as when the lines below them are commented out."""
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {key: value for key, value in document.items() if value is not None or key not in known}


def known(document: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The part of the document that a struct of this type has keys for."""
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {key: value for key, value in document.items() if key in names}


def refuse_unknown_keys(document: Mapping[str, Any], kinds: Sequence[type[msgspec.Struct]], where: str) -> None:
    """Raises BadInput for a key at the top of the document that none of these types has."""
    fields = {field.encode_name: field.type for kind in kinds for field in msgspec.structs.fields(kind)}
    for key in document:
        if key not in fields:
            raise BadInput(f"{where}: unknown key {key}{_hint(str(key), fields, '')}")


def must_be(kind: Any) -> str:
    """The phrase of a type: its `must_be`, else a description that does not document a field."""
    if get_origin(kind) is Annotated:
        first, *notes = get_args(kind)
        metas = [note for note in notes if isinstance(note, msgspec.Meta)]
        for meta in metas:
            if meta.extra and "must_be" in meta.extra:
                return str(meta.extra["must_be"])
        described = next((meta.description for meta in metas if meta.description and not meta.extra), None)
        return described or must_be(first)
    if get_origin(kind) in (Union, UnionType):
        return next((text for arg in get_args(kind) if (text := must_be(arg))), "")
    return ""


def _refuse_unknown(loaded: Any, kind: Any, where: str, path: tuple[str | int, ...]) -> None:
    """Walk through value and type together and refuse the first key that its struct does not have."""
    kind = plain(kind)
    if isinstance(loaded, list) and get_origin(kind) in (tuple, list):
        for index, item in enumerate(loaded):
            _refuse_unknown(item, get_args(kind)[0], where, (*path, index))
    if not (isinstance(loaded, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in loaded.items():
        if key not in fields:
            section = _spell(path)
            inside = f" in {section}" if section else ""
            hint = _hint(str(key), fields, section)
            raise BadInput(f"{where}: unknown key {key}{inside}{hint}")
        _refuse_unknown(value, fields[key], where, (*path, key))


def _hint(key: str, fields: dict[str, Any], section: str) -> str:
    """The known key that is meant: one of this section, or of a section below it, the first that has it."""
    below = {
        inner.encode_name: f"{section}.{name}.{inner.encode_name}".lstrip(".")
        for name, annotated in reversed(fields.items())
        if isinstance(kind := plain(annotated), type) and issubclass(kind, msgspec.Struct)
        for inner in msgspec.structs.fields(kind)
    }
    if key not in below and (hint := nearest(key, fields)):
        return hint
    near = closest(key, below)
    return f"; did you mean {below[near]}?" if near else f"; known are {', '.join(sorted(fields))}"


def plain(kind: Any) -> Any:
    """The one type that carries keys: without Annotated, None and UNSET."""
    if get_origin(kind) is Annotated:
        return plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        structs = [arg for arg in get_args(kind) if arg not in (type(None), msgspec.UnsetType)]
        return plain(structs[0]) if len(structs) == 1 else kind
    return kind


def _path(message: str, loaded: Any) -> tuple[str | int, ...]:
    """The path of a msgspec message, "... - at `$.hami.x[0]`", as keys and indices of `loaded`.

    A key may contain dots, so those of `loaded` say where it ends.
    """
    match = re.search(r" - at `\$(?P<path>.*)`$", message)
    rest, path = match["path"] if match else "", list[str | int]()
    while rest:
        keys = [key for key in loaded if isinstance(key, str)] if isinstance(loaded, dict) else []
        step = max((key for key in keys if re.match(rf"\.{re.escape(key)}(?=[.\[]|$)", rest)), key=len, default=None)
        index = re.match(r"\[(\d+)\]", rest)
        if step is None and index is None:
            break  # a value of a free mapping is written "[...]": the mapping itself is the last that can be named
        path.append(int(index[1]) if index else str(step))
        rest = rest[index.end() :] if index else rest[1 + len(str(step)) :]
        loaded = _value(loaded, (path[-1],))
    return tuple(path)


def _spell(path: tuple[str | int, ...]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _value(loaded: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            loaded = loaded[step]
        except (KeyError, IndexError, TypeError):
            return "missing"
    return loaded


def _expected(kind: Any, path: tuple[str | int, ...]) -> tuple[str, int]:
    """What the innermost type on the way down `path` says that it must be, and how deep that type is."""
    phrase, depth = "", 0
    for passed, step in enumerate((*path, None)):
        own = must_be(kind)
        if own:
            phrase, depth = own, passed
        kind = plain(kind)
        if step is None:
            break
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            kind = next((field.type for field in msgspec.structs.fields(kind) if field.encode_name == step), None)
        else:
            kind = (get_args(kind) or (None,))[0 if isinstance(step, int) else -1]
    return phrase, depth
