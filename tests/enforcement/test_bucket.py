"""The arithmetic of GPU time: C and Python agree, and no one gets more than share times time and what may be saved."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.enforcement.bucket import MAX_BLOCKED_NS, MAX_WORD, SAVED_NS, WHOLE_PPM, bin_add, charge
from tests.enforcement.bucket_program import Program, ask, bucket_program

TIMES = st.integers(0, 1 << 60)
RATES = st.integers(10_000, WHOLE_PPM)


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with bucket_program(tmp_path_factory.mktemp("bucket")) as process:
        yield process


@given(TIMES, TIMES, st.integers(-(1 << 62), 1 << 62), RATES, st.integers(0, 2 * MAX_BLOCKED_NS))
def test_c_and_python_charge_alike(in_c: Program, due: int, now: int, ns: int, rate: int, blocked: int) -> None:
    assert ask(in_c, "charge", due, now, ns, rate, blocked) == [charge(due, now, ns, rate, blocked)]


@given(st.integers(0, MAX_WORD), st.integers(0, 1 << 35), st.integers(0, 5000), st.booleans())
def test_c_and_python_fill_bins_alike(in_c: Program, word: int, number: int, us: int, brief: bool) -> None:
    assert ask(in_c, "bin", word, number, us, int(brief)) == list(bin_add(word, number, us, brief))


def test_a_charge_saturates_at_the_ends(in_c: Program) -> None:
    assert ask(in_c, "charge", MAX_WORD - 5, 0, 1 << 62, 10_000, 0) == [MAX_WORD]
    assert ask(in_c, "charge", 0, 0, -(1 << 62), 10_000, MAX_WORD) == [0]


STEPS = st.lists(st.tuples(st.integers(0, 200_000_000), st.integers(1, 30_000_000)), min_size=1, max_size=60)


@given(STEPS, RATES)
def test_work_in_any_window_stays_within_the_share(steps: list[tuple[int, int]], rate: int) -> None:
    """A client that launches whenever it may, at any moments: from each launch to each later one."""
    now, due, launched = 1 << 40, 0, []
    for pause, cost in steps:
        now = max(now + pause, due)
        due = charge(due, now, cost, rate)
        launched.append((now, cost))
    for i, (begin, _) in enumerate(launched):
        work = 0
        for at, cost in launched[i:]:
            assert work <= rate * (at - begin) / WHOLE_PPM + SAVED_NS + len(launched)
            work += cost


@given(STEPS, RATES)
def test_debt_is_never_lost_and_no_tenant_starves(steps: list[tuple[int, int]], rate: int) -> None:
    now = due = 1 << 40
    for pause, cost in steps:
        later = charge(due, now, cost, rate)
        assert later - max(due, now - SAVED_NS * WHOLE_PPM // rate) == cost * WHOLE_PPM // rate
        due, now = later, now + pause
    assert due <= (1 << 40) + sum(pause + cost * WHOLE_PPM // rate for pause, cost in steps), "it may launch again"


@given(st.lists(st.tuples(st.integers(0, 1100), st.booleans()), max_size=20))
def test_a_millisecond_is_charged_once(parts: list[tuple[int, bool]]) -> None:
    word = total = 0
    for us, brief in parts:
        word, charged = bin_add(word, 7, us, brief)
        total += charged
    assert total == min(1000, sum(min(us, 1000) for us, _ in parts))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=12))
def test_time_that_overlaps_counts_once(in_c: Program, parts: list[tuple[int, int]]) -> None:
    begin = ask(in_c, "span", 0, 0) and _fresh_begin()
    covered: set[int] = set()
    for start, length in parts:
        new = set(range(begin + start, begin + start + length)) - covered
        assert ask(in_c, "span", begin + start, begin + start + length) == [len(new)]
        covered |= new


_begins = iter(range(10_000, 1 << 40, 10_000))


def _fresh_begin() -> int:
    """The set keeps what was added, so each example has a time of its own, after all others."""
    return next(_begins)


def test_batches_are_a_millisecond_and_never_hide_gaps(in_c: Program) -> None:
    assert ask(in_c, "batch", 0, 0) == [256]
    assert ask(in_c, "batch", 100_000, 100_000) == [10]
    assert ask(in_c, "batch", 10_000_000, 10_000_000) == [1]
    assert ask(in_c, "batch", 5_000, 50_000) == [1], "launches that come seldom are measured one by one"


@given(RATES, st.integers(0, 1 << 40))
def test_only_time_that_others_got_is_saved_beyond_25_ms(rate: int, blocked: int) -> None:
    now = 1 << 60
    after = charge(0, now, 0, rate, blocked)
    assert now - after == SAVED_NS * WHOLE_PPM // rate + min(blocked, MAX_BLOCKED_NS)
