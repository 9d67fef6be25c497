"""Reading YAML into typed structs so that nothing is misread and every refusal is one sentence.

msgspec checks types and ranges, but its messages are written for programmers. Here the path of its error leads to the
field, and the field's own description says what is allowed. Unknown keys are refused with the nearest known one, and
so are keys given twice, of which YAML readers silently drop the first.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import yaml

from lamina.errors import BadInput

T = TypeVar("T", bound=msgspec.Struct)


_SHAPES = {"array": "a list", "object": "keys with values"}


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a key that stands twice in one mapping is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise BadInput(f"line {key_node.start_mark.line + 1}: the key {key!r} stands twice; write it once")
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_mapping(text: str, where: str) -> dict[str, Any]:
    """The mapping that the YAML (or JSON) `text` holds, empty for an empty text. Raises BadInput."""
    try:
        loaded = yaml.load(text, Loader=_UniqueKeys)
    except BadInput as problem:
        raise BadInput(f"{where}, {problem}") from problem
    except (yaml.YAMLError, TypeError) as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise BadInput(f"{where}{line}: this is not YAML: {getattr(problem, 'problem', None) or problem}") from problem
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BadInput(f"{where}: expected keys and values at the top, found {_kind(loaded)}")
    return loaded


def decode(loaded: Mapping[str, Any], kind: type[T], where: str) -> T:
    """`loaded` as a struct of type `kind`. Raises BadInput naming the path, the value and what is allowed."""
    _refuse_unknown(loaded, kind, where, ())
    try:
        return msgspec.convert(loaded, kind)
    except msgspec.ValidationError as problem:
        path = _path(str(problem))
        name = _spell(path) or "the document"
        missing = re.match(r"Object missing required field `(.+?)`", str(problem))
        if missing is not None:
            raise BadInput(f"{where}: {name} has no {missing[1]}; every entry needs one") from problem
        allowed = _allowed(kind, path) or _SHAPES["array" if "`array" in str(problem) else "object"]
        raise BadInput(f"{where}: {name} is {_value(loaded, path)!r}; allowed is {allowed}") from problem


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint such as "; did you mean x?", or nothing where no known name is close."""
    near = closest(name, known)
    return f"; did you mean {near}?" if near else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, whatever its capitals, or None where a guess would rather mislead."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def _refuse_unknown(loaded: Any, kind: Any, where: str, path: tuple[str | int, ...]) -> None:
    """Descend beside the types and refuse the first key that its struct does not have."""
    kind = _plain(kind)
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
            hint = nearest(str(key), fields) or f"; known are {', '.join(sorted(fields))}"
            raise BadInput(f"{where}: unknown key {key}{inside}{hint}")
        _refuse_unknown(value, fields[key], where, (*path, key))


def _plain(kind: Any) -> Any:
    """The one type that carries keys: without Annotated, None and UNSET."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        structs = [arg for arg in get_args(kind) if arg not in (type(None), msgspec.UnsetType)]
        return _plain(structs[0]) if len(structs) == 1 else kind
    return kind


def _path(message: str) -> tuple[str | int, ...]:
    """The path of a msgspec message, "... - at `$.hami.x[0]`", as keys and indices."""
    match = re.search(r" - at `\$(?P<path>.*)`$", message)
    if match is None:
        return ()
    # A value of a free mapping is written "[...]": the mapping itself is the last step that can be named.
    steps = re.findall(r"\.([^.\[\]]+)|\[([0-9]+)\]", match["path"])
    return tuple(key or int(index) for key, index in steps)


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


def _allowed(kind: Any, path: tuple[str | int, ...]) -> str:
    """The description of the innermost described type on the way down `path`."""
    found = ""
    for step in (*path, None):
        found = _described(kind) or found
        kind = _plain(kind)
        if step is None:
            break
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            hints = get_type_hints(kind, include_extras=True)
            kind = next((hints[f.name] for f in msgspec.structs.fields(kind) if f.encode_name == step), None)
        else:
            kind = (get_args(kind) or (None,))[0 if isinstance(step, int) else -1]
    return found


def _described(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        return next((n.description for n in notes if isinstance(n, msgspec.Meta) and n.description), "")
    if get_origin(kind) in (Union, UnionType):
        return next((text for arg in get_args(kind) if (text := _described(arg))), "")
    return ""


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", int: "a number", float: "a number", bool: "true or false"}.get(
        type(value), type(value).__name__
    )
