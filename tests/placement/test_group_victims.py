"""Victims for a group: whatever is found holds, nothing of it could stay, and equal members are placed if they can."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lamina.placement.eviction.group_victims import GroupMember, NodeEvictions, NodeRoom, cheapest_for_group
from lamina.placement.eviction.victims import Victim


@dataclass(frozen=True)
class Toy:
    """A node with room, and with pods that free room when they go."""

    free: int
    pods: Mapping[str, int]

    def room(self, sizes: Mapping[str, int], victims: Sequence[Victim]) -> NodeRoom:
        def fits(members: Sequence[str], evicted: frozenset[str]) -> bool:
            freed = sum(size for uid, size in self.pods.items() if uid in evicted)
            return sum(sizes[uid] for uid in members) <= self.free + freed

        return NodeRoom(victims, fits)


def run(
    sizes: Mapping[str, int],
    nodes: Mapping[str, Toy],
    *,
    needed: int | None = None,
    priorities: Mapping[str, int] | None = None,
    guarded: frozenset[str] = frozenset(),
    allowed: int = 0,
) -> dict[str, NodeEvictions] | None:
    """At most `allowed` of the guarded pods may go."""
    members = [GroupMember(uid, sizes[uid], list(nodes)) for uid in sorted(sizes, key=lambda uid: -sizes[uid])]
    rooms = {
        name: toy.room(sizes, [Victim(uid, (priorities or {}).get(uid, 0), 0.0) for uid in toy.pods])
        for name, toy in nodes.items()
    }

    def violations(uids: frozenset[str]) -> int:
        return max(0, len(uids & guarded) - allowed)

    search = cheapest_for_group(members, len(members) if needed is None else needed, rooms, violations, most_sets=1000)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: dict[str, NodeEvictions] | None = end.value
            return found


def gone(found: Mapping[str, NodeEvictions]) -> set[str]:
    return {victim.uid for each in found.values() for victim in each.victims}


def toys(count: int) -> st.SearchStrategy[dict[str, Toy]]:
    def named(drawn: list[tuple[int, list[int]]]) -> dict[str, Toy]:
        return {
            f"n{number}": Toy(free, {f"n{number}-{place}": size for place, size in enumerate(sizes)})
            for number, (free, sizes) in enumerate(drawn)
        }

    node = st.tuples(st.integers(0, 3), st.lists(st.integers(1, 3), max_size=4))
    return st.lists(node, min_size=1, max_size=count).map(named)


@given(toys(4), st.integers(1, 3), st.integers(1, 6))
def test_equal_members_are_placed_exactly_if_they_fit_and_no_victim_could_stay(
    nodes: dict[str, Toy], size: int, count: int
) -> None:
    sizes = {f"m{number}": size for number in range(count)}
    found = run(sizes, nodes)
    most = sum((toy.free + sum(toy.pods.values())) // size for toy in nodes.values())
    assert (found is not None) == (most >= count)
    for name, each in (found or {}).items():
        toy, needed = nodes[name], size * len(each.members)
        left = toy.free + sum(toy.pods[victim.uid] for victim in each.victims)
        assert left >= needed
        assert all(left - toy.pods[victim.uid] < needed for victim in each.victims)


@given(toys(3), st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 3), st.data())
def test_whatever_is_found_fits_within_the_budget(
    nodes: dict[str, Toy], amounts: list[int], allowed: int, data: st.DataObject
) -> None:
    sizes = {f"m{number}": amount for number, amount in enumerate(amounts)}
    pods = sorted(uid for toy in nodes.values() for uid in toy.pods)
    guarded = frozenset(uid for uid in pods if data.draw(st.booleans()))
    needed = data.draw(st.integers(1, len(sizes)))
    found = run(sizes, nodes, needed=needed, guarded=guarded, allowed=allowed)
    if found is None:
        return
    placed = [uid for each in found.values() for uid in each.members]
    assert len(placed) == len(set(placed)) == needed
    assert len(gone(found) & guarded) <= allowed
    for name, each in found.items():
        freed = sum(nodes[name].pods[victim.uid] for victim in each.victims)
        assert sum(sizes[uid] for uid in each.members) <= nodes[name].free + freed


def test_free_room_comes_first_and_then_the_least_important_pods() -> None:
    nodes = {"a": Toy(0, {"high": 2}), "b": Toy(2, {}), "c": Toy(0, {"low": 2})}
    found = run({"m0": 2, "m1": 2}, nodes, priorities={"high": 5, "low": 1})
    assert found == {"b": NodeEvictions(("m0",), ()), "c": NodeEvictions(("m1",), (Victim("low", 1, 0.0),))}


def test_the_room_of_a_pod_that_goes_anyway_is_used_before_another_pod_goes() -> None:
    nodes = {"a": Toy(0, {"large": 4}), "b": Toy(0, {"small": 2})}
    found = run({"m0": 2, "m1": 2}, nodes, priorities={"large": 0, "small": 1})
    assert found is not None and gone(found) == {"large"}


def test_a_budget_counts_the_pods_of_all_nodes() -> None:
    nodes = {name: Toy(0, {f"guarded-{name}": 1, f"other-{name}": 1}) for name in "ab"}
    guarded = frozenset({"guarded-a", "guarded-b"})
    sizes = {"m0": 2, "m1": 2}
    assert run(sizes, nodes, guarded=guarded, allowed=1) is None
    assert run(sizes, nodes, guarded=guarded, allowed=2) is not None
    free = run({"m0": 1, "m1": 1}, nodes, guarded=guarded, allowed=0)
    assert free is not None and gone(free) == {"other-a", "other-b"}


def test_members_go_only_to_their_nodes_and_only_as_many_as_are_needed() -> None:
    nodes = {"a": Toy(0, {"one": 1}), "b": Toy(9, {})}
    room = {name: toy.room({"m": 1}, [Victim(uid, 0, 0.0) for uid in toy.pods]) for name, toy in nodes.items()}
    members = [GroupMember("m", "kind", ["a", "unknown"])]
    steps = list(cheapest_for_group(members, 1, room, lambda uids: 0, most_sets=10))
    assert len(steps) == 1
    found = run({f"m{number}": 1 for number in range(5)}, nodes, needed=2)
    assert found is not None and found.keys() == {"b"} and len(found["b"].members) == 2
