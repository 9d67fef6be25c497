"""Lists of names that come again are recognized, and stand for the rows that the nodes have now."""

import msgspec
import pytest

from lamina.controller.extender.node_lists import NodeLists
from lamina.placement import NodeNames, NodeState, NodeTable
from tests.controller.cluster import inventory

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
