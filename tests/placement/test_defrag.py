"""Advice on moves: what it frees is free, every move has room at its time, and no one moves in vain."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.core.ledger import NOTHING, Taken
from lamina.core.requests import PodRequest
from lamina.placement.eviction.defrag import Resident, advise
from tests.placement.nodes import ask, request


def gpus(node: str, count: int = 2) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(uuid=f"{node}-{i}", index=i, model="M", memory_mib=1000, capacity_mib=1000, slots=4) for i in range(count)
    )


def resident(name: str, gpu: str, memory: int, *, movable: bool = True) -> Resident:
    pod: PodRequest = request(ask(memory))
    return Resident(name, pod, gpu.partition("-")[0], {gpu: Taken(1, memory, 0)}, movable)


NODES = {"a": gpus("a"), "b": gpus("b")}


def test_two_half_empty_gpus_become_one() -> None:
    [step] = advise(NODES, [resident("small", "a-0", 300), resident("large", "b-1", 500)])
    assert (step.node, step.frees) == ("a", "a-0")
    [move] = step.moves
    assert (move.pod, move.to_node, move.to_gpus) == ("small", "b", ("b-1",))


def test_the_own_node_comes_first() -> None:
    [step] = advise(NODES, [resident("x", "b-0", 300), resident("y", "b-1", 500), resident("z", "a-0", 900)])
    assert [(move.pod, move.to_gpus) for move in step.moves] == [("x", ("b-1",))]


def test_who_must_stay_stays_and_what_is_full_stays_full() -> None:
    assert (
        list(advise(NODES, [resident("x", "a-0", 300, movable=False), resident("y", "b-0", 300, movable=False)])) == []
    )
    assert list(advise(NODES, [resident("x", "a-0", 600), resident("y", "b-0", 600)])) == []
    assert list(advise(NODES, [resident("alone", "a-0", 10)])) == []


def test_no_more_moves_than_allowed() -> None:
    crowd = [resident(f"p{number}", gpu, 200) for number, gpu in enumerate(("a-0", "a-1", "b-0", "b-1"))]
    steps = list(advise(NODES, crowd))
    assert [len(step.moves) for step in steps] == [1, 1]
    assert sum(len(step.moves) for step in advise(NODES, crowd, most_moves=1)) == 1


def test_who_may_not_leave_its_node_stays_on_it() -> None:
    bound = msgspec.structs.replace(resident("x", "a-0", 300), elsewhere=False)
    assert list(advise(NODES, [bound, resident("y", "b-0", 500, movable=False)])) == []
    [step] = advise(NODES, [bound, resident("y", "a-1", 500, movable=False)])
    assert step.frees == "a-0"


def test_one_of_whom_nothing_is_known_counts_and_stays() -> None:
    unknown = msgspec.structs.replace(resident("x", "a-0", 100), request=None)
    assert list(advise(NODES, [unknown, resident("y", "b-0", 950)])) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a-0", "a-1", "b-0", "b-1"]), st.integers(50, 400)), max_size=8))
def test_every_move_fits_at_its_time(given_pods: list[tuple[str, int]]) -> None:
    residents: list[Resident] = []
    taken: dict[str, Taken] = {}
    for number, (gpu, memory) in enumerate(given_pods):
        held = taken.get(gpu, NOTHING).plus(Taken(1, memory, 0))
        if held.memory_mib <= 1000 and held.slots <= 4:
            taken[gpu] = held
            residents.append(resident(f"p{number}", gpu, memory))
    places = {each.name: next(iter(each.taken)) for each in residents}
    memory = {each.name: each.taken[places[each.name]].memory_mib for each in residents}

    def on(gpu: str) -> list[str]:
        return [name for name, place in places.items() if place == gpu]

    moved: set[str] = set()
    for step in advise(NODES, residents):
        for move in step.moves:
            assert move.pod not in moved, "no one moves twice"
            moved.add(move.pod)
            assert (places[move.pod],) == move.from_gpus
            [target] = move.to_gpus
            assert on(target), "onto a GPU that is shared already"
            places[move.pod] = target
            assert sum(memory[name] for name in on(target)) <= 1000 and len(on(target)) <= 4
        assert on(step.frees) == []
