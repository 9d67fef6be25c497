"""A row of a table checks a key, documents it and sets our field."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from lamina.configuration import strict
from lamina.configuration.importers.tables import Key, converted, put, section
from lamina.core.field_types import must_be
from lamina.errors import BadInput


class Group(Struct, frozen=True, rename="camel"):
    a_number: Annotated[int, Meta(le=5), must_be("an integer to 5")] = 3


class Ours(Struct):
    name: str
    group: Group = Group()
    words: tuple[str, ...] = ()


KEYS = (
    Key("title", "name"),
    Key("number", "group.aNumber"),
    Key("fast", "group.aNumber", bool, False, {True: 1}.get, "If true, `group.aNumber` is 1."),
    Key("words", "words", convert=lambda written: [word.upper() for word in written]),
    Key("unsupported", "", bool, False, meaning="Not supported."),
)
THEIRS: Any = section("Theirs", "What others write.", KEYS, Ours, "ours.")


def ours(written: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in converted(written, KEYS, "file", "theirs."):
        put(fields, key.ours, value)
    return fields


def test_a_key_has_the_type_and_the_default_of_our_field() -> None:
    assert msgspec.to_builtins(strict.decode({"title": "x"}, THEIRS, "file")) == {
        "title": "x", "number": 3, "fast": False, "words": (), "unsupported": False,
    }  # fmt: skip
    with pytest.raises(BadInput, match=r"file: number must be an integer to 5, got 6"):
        strict.decode({"title": "x", "number": 6}, THEIRS, "file")
    with pytest.raises(BadInput, match="file: title is required"):
        strict.decode({}, THEIRS, "file")


def test_a_key_is_documented_as_our_field_unless_its_row_says_otherwise() -> None:
    properties = msgspec.json.schema_components([THEIRS])[1]["Theirs"]["properties"]
    assert properties["number"]["title"] == "Is `ours.group.aNumber`."
    assert properties["fast"]["title"] == "If true, `group.aNumber` is 1."
    assert THEIRS.__doc__ == "What others write."


def test_a_written_key_sets_our_field() -> None:
    assert ours({"title": "x", "number": 5}) == {"name": "x", "group": {"aNumber": 5}}
    assert ours({"number": 0, "words": ["a"]}) == {"group": {"aNumber": 0}, "words": ["A"]}


def test_a_value_that_converts_to_none_sets_nothing() -> None:
    assert ours({"fast": False, "title": None}) == {}
    assert ours({"number": 5, "fast": True}) == {"group": {"aNumber": 1}}


def test_a_list_is_added_to_the_one_that_is_there() -> None:
    fields: dict[str, Any] = {}
    put(fields, "group.words", [])
    assert fields == {}
    for value in (["a"], [], ["b"]):
        put(fields, "group.words", value)
    assert fields == {"group": {"words": ["a", "b"]}}


def test_a_key_whose_place_nothing_takes_is_refused_if_it_is_on() -> None:
    assert ours({"unsupported": False}) == {}
    with pytest.raises(BadInput, match=r"file: theirs\.unsupported must be false \(not supported\), got true"):
        ours({"unsupported": True})


def test_what_a_conversion_refuses_names_the_document() -> None:
    def refuse(written: Literal["x"]) -> None:
        raise BadInput(f"{written} is impossible")

    with pytest.raises(BadInput, match="file: x is impossible"):
        list(converted({"key": "x"}, [Key("key", "name", convert=refuse)], "file", ""))


def test_a_key_may_contain_dots() -> None:
    keys = (Key("a.b", "name", Literal["x"], "x"), Key("a.b.c", "group.aNumber"), Key("a", "", Group | None, None))
    theirs: Any = section("Dotted", "Keys with dots.", keys, Ours)
    for written, refusal in (
        ({"a.b": "y"}, 'file: a.b must be .*, got "y"'),
        ({"a.b": "x", "a.b.c": 6}, "file: a.b.c must be an integer to 5, got 6"),
        ({"a": {"aNumber": 6}, "a.b": "x"}, "file: a.aNumber must be an integer to 5, got 6"),
    ):
        with pytest.raises(BadInput, match=refusal):
            strict.decode(written, theirs, "file")
