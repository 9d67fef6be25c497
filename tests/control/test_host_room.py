"""Free CPU and memory of nodes, pod by pod, against sums made anew."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.control.host_room import UNKNOWN, HostRoom
from lamina.model.host_size import HostSize

NODES, OFFERED = ("a", "b"), HostSize(8000, 4096)
STEPS = st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from([*NODES, ""]), st.integers(0, 3000))


@given(steps=st.lists(STEPS, max_size=12))
def test_what_is_free_is_what_is_offered_less_what_is_bound(steps: list[tuple[str, str, int]]) -> None:
    room, bound = HostRoom(), dict[str, tuple[str, int]]()
    for node in NODES:
        room.node_seen(node, OFFERED)
    for uid, node, cpu in steps:
        if node:
            assert room.pod_seen(uid, node, HostSize(cpu, 10)) == (uid not in bound)
            bound[uid] = node, cpu
        else:
            room.pod_gone(uid)
            bound.pop(uid, None)
    for node in NODES:
        here = [cpu for at, cpu in bound.values() if at == node]
        assert room.free(node) == (8000 - sum(here), 4096 - 10 * len(here))


def test_changes_are_told_once_and_unknown_nodes_are_not_full() -> None:
    room = HostRoom()
    room.pod_seen("u", "a", HostSize(1000, 1000))
    assert room.free("a") == UNKNOWN
    room.node_seen("a", OFFERED)
    assert room.free("a") == (7000, 3096)
    assert set(room.changed()) == {"a"} and not set(room.changed())
    room.node_seen("a", OFFERED)
    room.pod_seen("u", "a", HostSize(1000, 1000))
    assert not set(room.changed())
    room.node_gone("a")
    assert set(room.changed()) == {"a"}
