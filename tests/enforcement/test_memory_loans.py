"""What containers may hold of a GPU whose memory is lent: against the statements that have to hold, and by example."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lamina.enforcement.memory_loans import CALM_NS, Hosted, Lender, Lending, MemoryHolder, decide

GIB = 1 << 30
CAPACITY = 16 * GIB


def holder(name: str, guaranteed: float, limit: float, held: float, made_at: int = 0) -> MemoryHolder:
    """Amounts in GiB."""
    return MemoryHolder(
        name=name,
        guaranteed=int(guaranteed * GIB),
        limit=int(limit * GIB),
        held=int(held * GIB),
        made_at=made_at,
    )


def gib(lending: Lending) -> tuple[float, float, bool]:
    return lending.allowed / GIB, lending.host / GIB, lending.neighbors_borrow


@pytest.mark.parametrize(
    ("holders", "expected"),
    [
        # the others hold nothing: all of the limit
        ([holder("a", 8, 16, 0), holder("b", 8, 8, 0)], [(16, 0, False), (8, 0, False)]),
        ([holder("a", 8, 16, 14), holder("b", 8, 8, 0)], [(16, 0, False), (8, 0, True)]),
        # what is left is lent, also what others are guaranteed and do not hold
        ([holder("a", 8, 16, 8), holder("b", 8, 8, 3)], [(13, 0, False), (8, 0, False)]),
        ([holder("a", 4, 16, 4), holder("b", 4, 16, 4)], [(12, 0, False), (12, 0, False)]),
        # full: none may have more
        ([holder("a", 8, 16, 10), holder("b", 8, 8, 6)], [(10, 0, False), (8, 0, True)]),
        # more than full: the borrower returns
        ([holder("a", 8, 16, 14), holder("b", 8, 8, 6)], [(10, 4, False), (8, 0, True)]),
        # of two borrowers the younger one first
        (
            [holder("a", 4, 16, 8, made_at=1), holder("b", 4, 16, 6, made_at=2), holder("c", 8, 8, 4)],
            [(8, 0, True), (4, 2, True), (8, 0, True)],
        ),
        (
            [holder("a", 4, 16, 8, made_at=1), holder("b", 4, 16, 6, made_at=2), holder("c", 8, 8, 7)],
            [(5, 3, True), (4, 2, True), (8, 0, True)],
        ),
        # a figure beyond the limit counts as the limit
        ([holder("a", 8, 16, 8), holder("b", 8, 8, 1 << 20)], [(8, 0, False), (8, 0, False)]),
    ],
)
def test_examples(holders: list[MemoryHolder], expected: list[tuple[float, float, bool]]) -> None:
    assert [gib(Lender().tick(1, CAPACITY, holders)[each.name]) for each in holders] == expected


def test_a_gpu_of_unknown_size_lends_nothing() -> None:
    holders = [holder("a", 8, 16, 12), holder("b", 8, 8, 0)]
    assert [Lender().tick(1, 0, holders)[each.name].allowed for each in holders] == [8 * GIB] * 2


def test_memory_comes_back_from_the_host_when_there_has_been_room_for_a_while() -> None:
    lender, busy = Lender(), [holder("a", 8, 16, 14), holder("b", 8, 8, 6)]
    calm = [busy[0], structs.replace(busy[1], held=0)]
    assert lender.tick(1, CAPACITY, busy)["a"].host == 4 * GIB
    assert lender.tick(2, CAPACITY, calm)["a"] == Lending(allowed=16 * GIB, host=4 * GIB)
    assert lender.tick(1 + CALM_NS, CAPACITY, calm)["a"].host == 4 * GIB
    assert lender.tick(2 + CALM_NS, CAPACITY, calm)["a"].host == 0
    # busy in between: it starts again
    lender.tick(3 + CALM_NS, CAPACITY, busy)
    lender.tick(4 + CALM_NS, CAPACITY, calm)
    lender.tick(5 + CALM_NS, CAPACITY, busy)
    lender.tick(6 + CALM_NS, CAPACITY, calm)
    assert lender.tick(5 + 2 * CALM_NS, CAPACITY, calm)["a"].host == 4 * GIB


def test_a_container_that_is_gone_is_forgotten() -> None:
    lender, busy = Lender(), [holder("a", 8, 16, 14), holder("b", 8, 8, 6)]
    lender.tick(1, CAPACITY, busy)
    lender.tick(2, CAPACITY, busy[1:])
    assert lender.tick(3, CAPACITY, [structs.replace(busy[0], held=0)])["a"].host == 0


@st.composite
def gpus(draw: st.DrawFn) -> tuple[int, list[MemoryHolder], dict[str, Hosted]]:
    """Holders whose guaranteed amounts fit the GPU, with what they kept on the host before."""
    capacity = draw(st.integers(1, 1000))
    holders, left = [], capacity
    for i in range(draw(st.integers(1, 6))):
        guaranteed = draw(st.integers(0, left))
        left -= guaranteed
        limit = max(1, guaranteed + draw(st.integers(0, 1000)))
        holders.append(
            MemoryHolder(
                name=str(i),
                guaranteed=guaranteed,
                limit=limit,
                held=draw(st.integers(0, limit * 2)),
                made_at=draw(st.integers(0, 3)),
            )
        )
    hosted = {
        each.name: Hosted(bytes=draw(st.integers(0, 1000)), ample_since=draw(st.integers(0, 5))) for each in holders
    }
    return capacity, holders, hosted


def broken(
    capacity: int, holders: Sequence[MemoryHolder], hosted: Mapping[str, Hosted], lendings: Mapping[str, Lending]
) -> list[str]:
    """Which of the promises the decisions break."""
    held = {each.name: min(each.held, each.limit) for each in holders}
    total = sum(held.values())
    promises = {
        "each may hold what it is guaranteed": all(lendings[h.name].allowed >= h.guaranteed for h in holders),
        "and never more than its limit": all(lendings[h.name].allowed <= h.limit for h in holders),
        "none alone fills more than the GPU": all(
            total - held[h.name] + lendings[h.name].allowed <= capacity
            for h in holders
            if lendings[h.name].allowed > max(h.guaranteed, held[h.name])
        ),
        "a full GPU lends nothing more": total < capacity
        or all(lendings[h.name].allowed <= max(h.guaranteed, held[h.name]) for h in holders),
        "what is free can be borrowed": all(
            lendings[h.name].allowed == min(h.limit, max(h.guaranteed, held[h.name] + capacity - total))
            for h in holders
            if total <= capacity
        ),
        "what stays on the GPU fits it": sum(held[h.name] - min(held[h.name], lendings[h.name].host) for h in holders)
        <= capacity,
        "who returns gets nothing more": all(
            lendings[h.name].allowed == held[h.name] - min(lendings[h.name].host, h.borrowed)
            for h in holders
            if total > capacity and lendings[h.name].host > hosted[h.name].bytes
        ),
        "only borrowers return": all(lendings[h.name].host <= max(h.borrowed, hosted[h.name].bytes) for h in holders),
        "the older one returns last": all(
            lendings[young.name].host >= young.borrowed
            for old in holders
            for young in holders
            if young.made_at > old.made_at and lendings[old.name].host > hosted[old.name].bytes
        ),
        "others know of borrowers": all(
            lendings[h.name].neighbors_borrow == any(o.borrowed > 0 for o in holders if o is not h) for h in holders
        ),
    }
    return [promise for promise, holds in promises.items() if not holds]


@given(gpus())
def test_promises(gpu: tuple[int, list[MemoryHolder], dict[str, Hosted]]) -> None:
    capacity, holders, hosted = gpu
    lendings, _ = decide(10, capacity, holders, hosted)
    assert broken(capacity, holders, hosted, lendings) == []


MUTANTS = {
    "lends all of the limit": lambda h, lent: structs.replace(lent, allowed=h.limit),
    "lends nothing": lambda h, lent: structs.replace(lent, allowed=h.guaranteed),
    "lends beyond the limit": lambda h, lent: structs.replace(lent, allowed=lent.allowed + 1),
    "takes what is guaranteed": lambda h, lent: structs.replace(lent, allowed=min(lent.allowed, h.held)),
    "returns nothing": lambda h, lent: structs.replace(lent, host=0),
    "returns what is guaranteed too": lambda h, lent: structs.replace(lent, host=h.held if lent.host else 0),
    "says nothing of borrowers": lambda h, lent: structs.replace(lent, neighbors_borrow=False),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_errors_break_a_promise(name: str) -> None:
    holders = [holder("a", 4, 16, 10, made_at=1), holder("b", 4, 8, 7, made_at=2), holder("c", 8, 8, 3)]
    calm = [holder("a", 4, 16, 5), holder("b", 4, 8, 1), holder("c", 8, 8, 3)]
    hosted = dict.fromkeys("abc", Hosted(bytes=0))
    found = []
    for each in (holders, calm):
        lendings, _ = decide(1, CAPACITY, each, hosted)
        assert broken(CAPACITY, each, hosted, lendings) == []
        mutated = {h.name: MUTANTS[name](h, lendings[h.name]) for h in each}
        found += broken(CAPACITY, each, hosted, mutated)
    assert found


def known(each: MemoryHolder, listed: float, unlisted: float = 0) -> MemoryHolder:
    """The driver lists so many GiB with the container's processes, and of its word so many may be managed memory."""
    return structs.replace(each, listed=int(listed * GIB), unlisted=int(unlisted * GIB))


HONEST = holder("honest", 4, 16, 12, made_at=2)
"""The youngest: 4 GiB of plain memory and 8 GiB of managed memory, which the driver has on the GPU."""


@pytest.mark.parametrize(
    ("liar", "unlisted"),
    [
        (known(holder("liar", 0, 16, 16, made_at=1), 0), 8),  # no process of it is on the GPU
        (known(holder("liar", 0, 16, 16, made_at=1), 0.25, 15.75), 8),  # one with nothing but a context
        (known(holder("liar", 0, 16, 16, made_at=1), 0, 16), None),  # the driver does not say what is in use
        (structs.replace(holder("liar", 0, 16, 16, made_at=1), trusted=False), 8),  # nor what the process has
    ],
)
def test_a_lie_about_held_memory_has_no_neighbor_return_memory(liar: MemoryHolder, unlisted: float | None) -> None:
    """`unlisted` in GiB is in use on the GPU and of no listed process: the honest one's."""
    free = None if unlisted is None else int(unlisted * GIB)
    lendings = Lender().tick(1, CAPACITY, [liar, known(HONEST, 4, 8)], free)
    assert lendings["honest"].host == 0
    assert lendings["honest"].allowed >= 12 * GIB, "it keeps what it holds"


def test_what_the_driver_confirms_has_to_be_returned_for() -> None:
    needs = known(holder("needs", 8, 8, 6, made_at=1), 6)
    lendings = Lender().tick(1, CAPACITY, [needs, known(HONEST, 4, 8)], 6 * GIB)
    assert lendings["honest"].host == 2 * GIB and lendings["needs"].host == 0


@pytest.mark.parametrize(("listed", "returned"), [(True, 6), (False, 0)])
def test_of_two_borrowers_the_younger_returns_what_the_driver_lists_of_the_older(listed: bool, returned: int) -> None:
    """Both borrow 10 GiB beyond 1. A driver that lists managed memory for the whole GPU decides itself what stays."""
    pair = [holder("old", 1, 16, 11, made_at=1), holder("young", 1, 16, 11, made_at=2)]
    pair = [known(each, 11) if listed else known(each, 1, 10) for each in pair]
    lendings = Lender().tick(1, CAPACITY, pair, 0 if listed else 14 * GIB)
    assert [lendings[name].host / GIB for name in ("old", "young")] == [0, returned]
    assert [lendings[name].allowed / GIB for name in ("old", "young")] == [11, 11 - returned]


def test_what_no_process_is_listed_with_is_first_its_own() -> None:
    """Of 10 GiB in use besides, 8 are its own by its word. So 2 are others', of whom one says 4."""
    other = known(holder("other", 0, 8, 4), 0, 4)
    lendings = Lender().tick(1, CAPACITY, [known(HONEST, 4, 8), other], 10 * GIB)
    assert lendings["honest"].allowed == (16 - 2) * GIB
    assert lendings["honest"].neighbors_borrow, "though no process of the other one is listed with it"


@given(gpus(), st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 2000), st.integers(0, 5))
def test_a_word_without_a_process_changes_nothing_for_others(
    gpu: tuple[int, list[MemoryHolder], dict[str, Hosted]], one: int, other: int, unlisted: int, made_at: int
) -> None:
    capacity, holders, hosted = gpu
    liar = MemoryHolder(name="liar", guaranteed=0, limit=1000, held=one, made_at=made_at, listed=0)
    before = dict(hosted) | {"liar": Hosted(bytes=0)}
    found = [
        decide(10, capacity, [*holders, structs.replace(liar, held=held)], before, unlisted)[0] for held in (one, other)
    ]
    for each in holders:
        assert found[0][each.name] == found[1][each.name]


@given(gpus(), st.integers(0, 1000), st.integers(0, 3000), st.integers(0, 5))
def test_none_returns_more_than_the_driver_can_have_of_others(
    gpu: tuple[int, list[MemoryHolder], dict[str, Hosted]], listed: int, word: int, made_at: int
) -> None:
    """Whatever one says of its managed memory: the others' own words, and what is in use besides."""
    capacity, holders, _ = gpu
    liar = MemoryHolder(
        name="liar", guaranteed=0, limit=5000, held=word, made_at=made_at, listed=min(listed, word), unlisted=word
    )
    hosted = {each.name: Hosted(bytes=0) for each in (*holders, liar)}
    unlisted = sum(each.counted for each in holders)
    honest = [structs.replace(each, listed=0, unlisted=each.counted) for each in holders]
    lendings, _ = decide(10, capacity, [*honest, liar], hosted, unlisted)
    for each in honest:
        assert lendings[each.name].host <= max(0, each.counted + min(listed, word) - capacity)


class LendingGpus:
    """A GPU on which containers allocate what they may, and free, while the agent decides now and then."""

    def __init__(self, capacity: int, holders: Sequence[MemoryHolder]) -> None:
        self.capacity, self.holders = capacity, {each.name: structs.replace(each, held=0) for each in holders}
        self.lender = Lender()
        self.now = 0
        self.look()

    def look(self) -> None:
        self.now += 10**7
        self.lendings = self.lender.tick(self.now, self.capacity, list(self.holders.values()))

    def allocate(self, name: str, size: int) -> bool:
        before = self.holders[name]
        if before.held + size > self.lendings[name].allowed:
            return False
        self.holders[name] = structs.replace(before, held=before.held + size)
        return True

    def plain(self) -> int:
        """What no driver can move out: up to what each is guaranteed."""
        return sum(min(each.held, each.guaranteed) for each in self.holders.values())


STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 400), st.booleans(), st.booleans()), max_size=60)


@given(gpus(), STEPS)
def test_guarantees_hold_in_every_order_of_events(
    gpu: tuple[int, list[MemoryHolder], dict[str, Hosted]], steps: list[tuple[int, int, bool, bool]]
) -> None:
    capacity, holders, _ = gpu
    world = LendingGpus(capacity, holders)
    for number, size, frees, looks in steps:
        name = str(number % len(holders))
        one = world.holders[name]
        if frees:
            world.holders[name] = structs.replace(one, held=max(0, one.held - size))
        elif one.held + size <= one.guaranteed:
            assert world.allocate(name, size)  # the agent refuses nothing that is guaranteed, whenever it looked
        else:
            world.allocate(name, size)
        assert world.plain() <= capacity
        if looks:
            world.look()
            on_gpu = sum(max(0, h.held - world.lendings[h.name].host) for h in world.holders.values())
            assert on_gpu <= capacity
