"""How much of the time between two events is work: gaps of a slow program and turns of others are not."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.enforcement.bucket_program import Program, ask, bucket_program

US, MS = 1_000, 1_000_000
NOW_DONE, FAR_BEHIND = 1 * US, 500 * US


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with bucket_program(tmp_path_factory.mktemp("estimate")) as process:
        yield process


def learned(program: Program, *singles: int) -> Program:
    ask(program, "forget")
    for span in singles:
        ask(program, "learn", span, span, 1)
    return program


def work(program: Program, span: int, behind: int, launches: int) -> tuple[int, bool]:
    ns, sure = ask(program, "work", span, behind, launches)
    return ns, bool(sure)


def test_without_a_single_launch_a_span_counts_whole(program: Program) -> None:
    assert work(learned(program), 5 * MS, NOW_DONE, 200) == (5 * MS, False)
    assert work(learned(program), 1 * MS, NOW_DONE, 200) == (1 * MS, True)


def test_gaps_of_a_program_that_launches_slowly_are_no_work(program: Program) -> None:
    assert work(learned(program, *[4 * US] * 8), 1 * MS, NOW_DONE, 100) == (400 * US, True)


def test_a_queue_that_never_drained_is_all_work(program: Program) -> None:
    assert work(learned(program, 4 * US), 1 * MS, FAR_BEHIND, 100) == (1 * MS, True)


def test_turns_of_others_are_no_work(program: Program) -> None:
    assert work(learned(program, *[100 * US] * 8), 3 * MS, 2 * MS, 10) == (1 * MS, True)


def test_where_some_launches_are_long_a_long_span_is_not_explained_away(program: Program) -> None:
    mixed = learned(program, *[10 * US] * 9, 5 * MS, *[10 * US] * 9)
    assert work(mixed, 5 * MS, 5 * MS, 10) == (5 * MS, False)


def test_kernels_that_take_nothing_are_no_work(program: Program) -> None:
    assert work(learned(program, 100), 10 * US, 0, 256) == (0, True)
    assert work(learned(program), 100, 0, 1) == (0, True)


NS = st.integers(0, 1 << 62)
COUNT = st.integers(1, 256)


@given(st.lists(st.tuples(NS, NS, COUNT), max_size=6), NS, NS, COUNT)
def test_work_is_never_more_than_the_span(
    program: Program, before: list[tuple[int, int, int]], span: int, behind: int, launches: int
) -> None:
    learned(program)
    for each in before:
        ask(program, "learn", *each)
    assert work(program, span, behind, launches)[0] <= span


@given(st.lists(st.integers(US, 500 * US), min_size=1, max_size=30))
def test_the_estimate_lies_among_what_was_learned(program: Program, singles: list[int]) -> None:
    learned(program)
    for single in singles:
        each, most = ask(program, "learn", single, 0, 1)
    assert min(singles) - 8 * len(singles) <= each <= max(singles)
    assert singles[-1] <= most <= max(singles)
