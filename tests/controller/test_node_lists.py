"""Lists of names that come again are recognized, and stand for the rows that the nodes have now."""

import itertools

import msgspec
import numpy as np
import pytest

from lamina.controller.extender.node_lists import NodeLists
from lamina.controller.scheduling.scores import NodeScores, stretched, with_single_best
from lamina.placement import NodeNames, NodeState, NodeTable
from tests.worlds.objects import inventory

NAMES = [f"node-{number}" for number in range(200)]
WRITTEN = msgspec.Raw(msgspec.json.encode(NAMES))


def table(*names: str) -> NodeTable:
    made = NodeTable()
    for name in names:
        made.put(NodeState.of(name, inventory(name)))
    return made


def test_a_list_that_was_read_or_written_is_recognized() -> None:
    lists = NodeLists()
    first = lists.read(WRITTEN)
    assert first == NAMES and lists.read(WRITTEN) is first
    answer = NodeNames(NAMES[:150])
    assert lists.read(lists.write(answer)) is answer
    assert lists.read(msgspec.Raw(b'["node-0"]')) == ["node-0"] and lists.read(msgspec.Raw(b"null")) is None


@pytest.mark.parametrize("written", [b"7", b'{"a":1}', b'["a",7]', b'["a"'])
def test_anything_else_is_refused(written: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        NodeLists().read(msgspec.Raw(written))


@pytest.mark.parametrize("names", [NAMES, NAMES[:3], ["one"], [], ['quoted"', 'a",', "b", '","', "\\\\"]])
def test_scores_are_written_as_a_list(names: list[str]) -> None:
    lists = NodeLists()
    for scores in (np.arange(len(names)) % 11, np.zeros(len(names), np.int64), np.full(len(names), 99)):
        for given in (names, NodeNames(names), lists.read(lists.write(names)) or []):
            written = msgspec.json.decode(lists.write_scores(given, scores))
            assert [(each["host"], each["score"]) for each in written] == list(zip(names, scores.tolist(), strict=True))


FIELDS = (
    b'"Pod":{"a":[1]}',
    b'"Nodes":null',
    b'"nodenames":["x"]',
    b'"more":{"NodeNames":["x"]}',
    b'"text":"\\",\\"NodeNames"',
)


@pytest.mark.parametrize("fields", [*itertools.permutations(FIELDS, 2), *itertools.permutations(FIELDS, 1)])
def test_a_known_list_at_the_end_of_a_request_is_split_off(fields: tuple[bytes, ...]) -> None:
    lists = NodeLists()
    known = lists.read(WRITTEN)
    body = b'{%b,"NodeNames":%b}' % (b",".join(fields), bytes(WRITTEN))
    rest, names = lists.split(body)
    assert names is known
    assert msgspec.json.decode(rest) | {"NodeNames": NAMES} == msgspec.json.decode(body)
    assert lists.split(body[:-1] + b" }") == (body[:-1] + b" }", None)


@pytest.mark.parametrize(
    "start", [b'{"a":"x', b'{"a":{"b":1', b'["a"', b'{"a":[1', b'{"a"', b"{", b"{ \n", b"", b'{"a":"\\']
)
def test_what_is_no_request_stays_none_without_its_list(start: bytes) -> None:
    lists = NodeLists()
    lists.read(WRITTEN)
    body = start + b',"NodeNames":%b}' % bytes(WRITTEN)
    for text in (body, lists.split(body)[0]):
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)


def test_rows_follow_the_nodes_that_come_and_go() -> None:
    nodes, names = table("a", "b"), NodeNames(["b", "c", "a"])
    assert nodes.rows_of(names).tolist() == [1, -1, 0]
    nodes.drop("a")
    assert nodes.rows_of(names).tolist() == [1, -1, -1]
    nodes.put(NodeState.of("c", inventory("c")))
    assert nodes.rows_of(names).tolist() == [1, 0, -1]
    names.append("b")
    assert nodes.rows_of(names).tolist() == [1, 0, -1, 1]
    assert table("b").rows_of(names).tolist() == [0, -1, -1, 0]


def test_chosen_names_bring_their_rows() -> None:
    nodes = table("a", "b", "c")
    names = NodeNames(["c", "a", "b"])
    rows = nodes.rows_of(names)
    chosen = nodes.choose(names, rows, rows > 0)
    assert chosen == ["c", "b"] and nodes.rows_of(chosen).tolist() == [2, 1]


def test_the_same_choice_is_the_same_list() -> None:
    nodes = table("a", "b", "c")
    names = NodeNames(["c", "a", "b"])
    rows = nodes.rows_of(names)
    chosen = nodes.choose(names, rows, rows > 0)
    assert nodes.choose(names, rows, rows > 0) is chosen and nodes.choose(names, rows, rows >= 0) is names
    assert nodes.choose(names, rows, rows > 1) == ["c"]
    nodes.drop("b")
    nodes.put(NodeState.of("d", inventory("d")))  # which takes the row of b
    names.append("d")
    rows = nodes.rows_of(names)
    assert nodes.choose(names, rows, rows > 0) == ["c", "d"] and nodes.rows_of(chosen).tolist() == [2, -1]


def test_the_first_name_of_many_equally_good_ones_is_the_best() -> None:
    names = NodeNames(sorted((f"node-{number}" for number in range(300)), key=lambda name: hash(name) % 97))
    values, fits = np.zeros(300), np.array([not name.endswith("0") for name in names])
    expected = min(name for name, fit in zip(names, fits.tolist(), strict=True) if fit)
    for nodes in (names, list(names)):
        scores = with_single_best(stretched(values, fits), values, fits, nodes)
        assert NodeScores(list(nodes), scores).best == expected and scores.max() == 10
    names.append("a")
    values, fits = np.zeros(301), np.ones(301, np.bool_)
    assert NodeScores(names, with_single_best(stretched(values, fits), values, fits, names)).best == "a"
