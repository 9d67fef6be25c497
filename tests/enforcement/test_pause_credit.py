"""For how long work comes first that never pauses."""

import pytest
from msgspec import structs

from lamina.enforcement.pause_credit import CREDIT_MS, PER_PAUSE, WAITED_NS, PauseCredit, Worker

MS = 1_000_000
TICK = 10
BUSY = Worker("a", signals=True, asked_at=0, waited_at=0, pause_ns=0, delays=True)
RESTS = structs.replace(BUSY, signals=False)
NOW = 1 << 50


def last(worker: Worker, ticks: int, credit: PauseCredit | None = None) -> bool:
    """Whether the work comes first after so many decisions."""
    credit, found = credit or PauseCredit(), [True]
    for _ in range(ticks):
        found = credit.suffices([worker], NOW, TICK)
    return found[0]


def used_up() -> PauseCredit:
    credit = PauseCredit()
    assert not last(BUSY, 2 * int(CREDIT_MS) // TICK, credit)
    return credit


def test_work_without_a_pause_comes_first_until_the_credit_is_used_up() -> None:
    assert last(BUSY, int(CREDIT_MS) // TICK - 1)
    assert not last(BUSY, int(CREDIT_MS) // TICK)


def test_a_pause_renews_the_credit() -> None:
    credit = used_up()
    assert last(RESTS, 1, credit)
    assert last(BUSY, int(PER_PAUSE) - 1, credit) and not last(BUSY, 1, credit)


def test_work_that_no_lower_priority_waits_for_costs_nothing() -> None:
    assert last(structs.replace(BUSY, delays=False), 10 * int(CREDIT_MS))


@pytest.mark.parametrize(
    "worker",
    [
        structs.replace(RESTS, waited_at=NOW - WAITED_NS + 1),
        structs.replace(RESTS, asked_at=NOW - MS, pause_ns=2 * MS),
    ],
    ids=["waits-for-its-share", "pauses-within-work"],
)
def test_what_is_no_pause_renews_nothing(worker: Worker) -> None:
    assert not last(worker, 1, used_up())


@pytest.mark.parametrize("tenths", [5, 8, 9])
def test_who_pauses_for_a_tenth_of_the_time_always_comes_first(tenths: int) -> None:
    credit = PauseCredit()
    for tick in range(100 * int(CREDIT_MS) // TICK):
        assert credit.suffices([BUSY if tick % 10 < tenths else RESTS], NOW, TICK) == [True]


def test_each_has_its_own_credit_and_one_that_is_gone_begins_anew() -> None:
    credit, other = used_up(), structs.replace(BUSY, name="b")
    assert credit.suffices([BUSY, other], NOW, TICK) == [False, True]
    assert credit.suffices([other], NOW, TICK) == [True]
    assert credit.suffices([BUSY, other], NOW, TICK) == [True, True]
