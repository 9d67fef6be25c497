"""A table has a row for each key of another system: which field of ours it sets, and how its value becomes ours.

The same rows check a document, import it, and document its keys. The type and the default of a key are those of our
field, unless its row says otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct

from lamina.configuration import strict
from lamina.configuration.yaml_documents import shown
from lamina.errors import BadInput


class Key(NamedTuple):
    """A key of another system."""

    theirs: str
    ours: str = ""
    """The path of our field. Where nothing takes its place, only the default is accepted."""
    kind: Any = None
    """The type of its values, if they are written otherwise than ours."""
    default: Any = UNSET
    convert: Callable[[Any], Any] = lambda written: written
    """Our value for theirs; None sets nothing."""
    meaning: str = ""
    """What it means, if it is not simply our field."""


def section(
    name: str, about: str, keys: Iterable[Key], ours: type[Struct], prefix: str = "", base: type[Struct] = Struct
) -> type[Struct]:
    """The type that checks these keys. Paths of our fields begin at the type `ours`, whose own path is `prefix`."""
    rows: dict[str, Key] = {}
    for key in keys:
        rows.setdefault(key.theirs.replace(".", "_"), key)
    return msgspec.defstruct(
        name,
        [_field(attribute, key, ours, prefix) for attribute, key in rows.items()],
        bases=(base,),
        namespace={"__doc__": about},
        rename={attribute: key.theirs for attribute, key in rows.items()},
        frozen=True,
        kw_only=True,
    )


def converted(written: Mapping[str, Any], keys: Iterable[Key], where: str, path: str) -> Iterator[tuple[Key, Any]]:
    """The keys that set a field of ours, with its value. Raises BadInput, in which `path` leads to the key."""
    for key in keys:
        value = written.get(key.theirs)
        if not key.ours and value not in (None, key.default):
            raise BadInput(
                f"{where}: {path}{key.theirs} must be {shown(key.default)} (not supported), got {shown(value)}"
            )
        try:
            value = None if value is None else key.convert(value)
        except BadInput as problem:
            raise BadInput(f"{where}: {problem}") from problem
        if value is not None and key.ours:
            yield key, value


def put(ours: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at a path. A list is added to the one that is there; an empty one sets nothing."""
    *groups, last = path.split(".")
    if value == []:
        return
    for group in groups:
        ours = ours.setdefault(group, {})
    ours[last] = ours[last] + value if isinstance(value, list) and last in ours else value


def join(into: dict[str, Any], more: Mapping[str, Any], path: str) -> None:
    """Add what another document says. Lists are joined. Raises BadInput, `path` first, if both set the same."""
    for key, value in more.items():
        here, other = f"{path}{key}", into.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            join(other, value, f"{here}.")
        elif isinstance(value, list) and isinstance(other, list):
            into[key] = [*other, *(each for each in value if each not in other)]
        elif key in into and other != value:
            raise BadInput(f"{here} is {shown(other)} in one file and {shown(value)} in another; keep one of them")
        else:
            into[key] = value


def by_answer(answers: Mapping[str, str]) -> list[str]:
    """Notes that give each answer once, after all names that have it."""
    names: dict[str, list[str]] = {}
    for name, answer in answers.items():
        names.setdefault(answer, []).append(name)
    return [f"{', '.join(each)}: {answer}" for answer, each in names.items()]


def _field(attribute: str, key: Key, ours: type[Struct], prefix: str) -> Any:
    title = Meta(title=key.meaning or f"Is `{prefix}{key.ours}`.")
    if key.kind is not None and key.default is not UNSET:
        return attribute, Annotated[key.kind, title], key.default
    field = _field_at(ours, key.ours)
    default = () if field.required else (field.default,)
    return attribute, Annotated[key.kind or field.type, title], *default


def _field_at(kind: Any, path: str) -> msgspec.structs.FieldInfo:
    name, _, rest = path.partition(".")
    field = next(field for field in msgspec.structs.fields(kind) if field.encode_name == name)
    return _field_at(strict.plain(field.type), rest) if rest else field
