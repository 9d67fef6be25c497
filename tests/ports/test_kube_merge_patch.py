"""Merge patches: the table of RFC 7386, and lists that are merged by the key of their elements."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.kube.merge_patch import merged

RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""The examples of the RFC's appendix: original, patch, result."""

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7386)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merged(target, patch) == result


@given(JSON, JSON)
def test_a_patch_applied_again_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merged(target, patch)
    assert merged(once, patch) == once


@given(JSON, JSON, st.booleans())
def test_neither_target_nor_patch_is_changed_and_the_patch_is_not_shared(target: Any, patch: Any, by_key: bool) -> None:
    before = copy.deepcopy((target, patch))
    result = merged(target, patch, by_key=by_key)
    assert (target, patch) == before
    _fill(result)
    assert patch == before[1]


def _fill(value: Any) -> None:
    """Change every list that a merge may have taken from the patch."""
    if isinstance(value, list):
        value.append("changed")
    elif isinstance(value, dict):
        for each in value.values():
            if isinstance(each, dict):
                _fill(each)


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
def test_an_empty_patch_keeps_an_object(target: dict[str, Any]) -> None:
    assert merged(target, {}) == merged(target, {}, by_key=True) == target


LIST = [{"name": "a", "image": "one", "env": [{"name": "x", "value": "1"}]}, {"name": "b", "image": "two"}]


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"name": "b", "image": "three"}], [LIST[0], {"name": "b", "image": "three"}]),
        ([{"name": "c"}], [*LIST, {"name": "c"}]),
        ([{"name": "a", "$patch": "delete"}], [LIST[1]]),
        ([{"name": "missing", "$patch": "delete"}], LIST),
        ([{"name": "b", "image": None}], [LIST[0], {"name": "b"}]),
        (
            [{"name": "a", "env": [{"name": "y", "value": "2"}]}],
            [LIST[0] | {"env": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]}, LIST[1]],
        ),
    ],
)
def test_lists_of_objects_merge_by_the_key_of_their_elements(patch: list[Any], result: list[Any]) -> None:
    assert merged({"list": LIST}, {"list": patch}, by_key=True) == {"list": result}
    assert merged({"list": LIST}, {"list": patch}) == {"list": patch}


@pytest.mark.parametrize("key", ["name", "type", "uid", "key", "containerPort", "ip"])
def test_every_key_by_which_kubernetes_matches(key: str) -> None:
    target = [{key: "1", "keep": True}, {key: "2"}]
    assert merged(target, [{key: "1", "new": True}], by_key=True) == [{key: "1", "keep": True, "new": True}, {key: "2"}]


@pytest.mark.parametrize("patch", [["x"], [1, 2], [{"other": 1}], [{"name": "a"}, "x"], []])
def test_lists_without_a_common_key_are_replaced(patch: list[Any]) -> None:
    assert merged(["old"], patch, by_key=True) == patch


def test_elements_of_the_target_that_are_no_objects_are_kept() -> None:
    assert merged(["x", {"name": "a"}], [{"name": "a", "v": 1}], by_key=True) == ["x", {"name": "a", "v": 1}]
