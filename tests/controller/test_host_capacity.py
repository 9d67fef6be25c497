"""Free CPU and memory of nodes, pod by pod, against fresh sums."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.controller.capacity.host_capacity import HostCapacity
from lamina.core.host_size import UNKNOWN_HOST, HostSize

NODES, OFFERED = ("a", "b"), HostSize(8000, 4096)
STEPS = st.tuples(
    st.sampled_from(["observe", "expect", "withdraw", "remove"]),
    st.sampled_from(["u1", "u2", "u3"]),
    st.sampled_from(NODES),
    st.integers(0, 3000),
)


@given(steps=st.lists(STEPS, max_size=12))
def test_what_is_free_is_what_is_offered_less_what_is_bound_or_expected(steps: list[tuple[str, str, str, int]]) -> None:
    room, bound, expected = HostCapacity(), dict[str, tuple[str, int]](), dict[str, tuple[str, int]]()
    for node in NODES:
        room.observe_node(node, OFFERED)
    for what, uid, node, cpu in steps:
        if what == "observe":
            assert room.observe_pod(uid, node, HostSize(cpu, 10)) == (uid not in bound)
            bound[uid] = node, cpu
        elif what == "expect":
            room.assume_pod(uid, node, HostSize(cpu, 10))
            expected[uid] = node, cpu
        elif what == "withdraw":
            room.withdraw_pod(uid)
            expected.pop(uid, None)
        else:
            room.remove_pod(uid)
            bound.pop(uid, None)
        if uid in bound or what == "remove":
            expected.pop(uid, None)
    for node in NODES:
        here = [cpu for at, cpu in (*bound.values(), *expected.values()) if at == node]
        assert room.free(node) == (8000 - sum(here), 4096 - 10 * len(here))


def test_changes_are_reported_once_and_unknown_nodes_are_not_full() -> None:
    room = HostCapacity()
    room.observe_pod("u", "a", HostSize(1000, 1000))
    assert room.free("a") == UNKNOWN_HOST
    room.observe_node("a", OFFERED)
    assert room.free("a") == (7000, 3096)
    assert set(room.pop_changed()) == {"a"} and not set(room.pop_changed())
    room.observe_node("a", OFFERED)
    room.observe_pod("u", "a", HostSize(1000, 1000))
    assert not set(room.pop_changed())
    room.remove_node("a")
    assert set(room.pop_changed()) == {"a"}
