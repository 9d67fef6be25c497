"""Whatever a YAML text is, it is plain data or one sentence."""

import pytest

from lamina.configuration.yaml_documents import load_documents, load_mapping, load_value
from lamina.errors import BadInput
from tests.configuration.odd_yaml import ODD_TEXTS


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_odd_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"^file\b") as refused:
        load_mapping(text, "file")
    assert len(str(refused.value).splitlines()) == 1


def test_anchors_can_be_repeated() -> None:
    assert load_mapping("a: &a {x: [1]}\nb: [*a, *a]", "file") == {"a": {"x": [1]}, "b": [{"x": [1]}] * 2}


def test_mappings_can_be_merged() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, x: 2}\nc: {d: {<<: *b, y: 3}, <<: [*a, *b]}"
    assert load_mapping(text, "file") == {
        "a": {"x": 1, "y": 1},
        "b": {"x": 2, "y": 1},
        "c": {"d": {"x": 2, "y": 3}, "x": 1, "y": 1},
    }


def test_several_documents() -> None:
    assert load_documents("a: 1\n---\n- b\n", "file") == [{"a": 1}, ["b"]]
    assert load_documents("", "file") == [] and load_value("", "file") is None and load_mapping("", "file") == {}
