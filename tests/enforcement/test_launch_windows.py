"""Launch windows: when a container launches, by C, and whether containers have windows at all."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from lamina.enforcement.launch_windows import (
    AGAIN_NS,
    LACK_NS,
    LOOK_NS,
    MAX_FAILED,
    MAX_PAUSE_NS,
    MIN_US,
    PAUSE_NS,
    PERIOD_US,
    SETTLE_NS,
    SHORT_NS,
    Launcher,
    LaunchWindows,
    length_us,
    words_of,
)
from tests.enforcement.bucket_program import Program, ask, bucket_program

MS, PERIOD_NS = 1_000_000, PERIOD_US * 1000
BEGIN, TICK_NS = 1 << 50, 10 * MS
TRIAL_NS = LOOK_NS + LACK_NS + SETTLE_NS + 3 * TICK_NS
BOUNDS = st.tuples(st.integers(0, PERIOD_US), st.integers(0, PERIOD_US)).filter(lambda both: both[0] < both[1])
TIMES = st.integers(0, 1 << 62)


def word(begin: int, end: int) -> int:
    return begin | end << 32


@given(st.integers(0, (1 << 64) - 1) | BOUNDS.map(lambda both: word(*both)))
def test_the_length_of_a_word_is_that_of_a_window_or_0(packed: int) -> None:
    begin, end = bounds(packed)
    assert length_us(packed) == (end - begin if begin < end <= PERIOD_US else 0)


def bounds(packed: int) -> tuple[int, int]:
    return packed & 0xFFFFFFFF, packed >> 32


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with bucket_program(tmp_path_factory.mktemp("window")) as process:
        yield process


def test_both_sides_have_the_same_period(in_c: Program) -> None:
    assert ask(in_c, "period") == [PERIOD_NS]


@given(BOUNDS, TIMES, st.integers(0, 1 << 40))
def test_who_waits_as_long_as_it_says_may_launch(in_c: Program, window: tuple[int, int], now: int, ns: int) -> None:
    (wait,) = ask(in_c, "wait", word(*window), now, ns)
    assert 0 <= wait <= PERIOD_NS
    assert ask(in_c, "wait", word(*window), now + wait, ns) == [0]


@given(BOUNDS, TIMES, st.integers(0, 1 << 40))
def test_a_batch_begins_inside_if_half_of_it_fits(in_c: Program, window: tuple[int, int], now: int, ns: int) -> None:
    begin, end = (1000 * bound for bound in window)
    phase = now % PERIOD_NS
    begins = begin <= phase < end and min(ns, end - begin) // 2 <= end - phase
    assert (ask(in_c, "wait", word(*window), now, ns) == [0]) is begins


@pytest.mark.parametrize(
    "packed",
    [0, word(5, 5), word(6, 5), word(0, PERIOD_US + 1), word(PERIOD_US, PERIOD_US), (1 << 64) - 1, 1 << 63],
)
def test_other_words_are_no_windows(in_c: Program, packed: int) -> None:
    assert ask(in_c, "wait", packed, 12345678, 1 << 60) == [0]
    assert ask(in_c, "fit", packed, 12345678, 1 << 60, 256) == [256]
    assert length_us(packed) == 0


@given(BOUNDS, TIMES, st.integers(0, 1 << 40), st.integers(1, 256))
def test_a_batch_ends_with_the_window(
    in_c: Program, window: tuple[int, int], now: int, each: int, launches: int
) -> None:
    (fit,) = ask(in_c, "fit", word(*window), now, each, launches)
    begin, end = (1000 * bound for bound in window)
    phase = now % PERIOD_NS
    assert 1 <= fit <= launches
    if not begin <= phase < end:
        assert fit == launches
    elif 1 < fit < launches:
        assert fit * each <= end - phase < (fit + 1) * each


LAUNCHERS = st.lists(st.tuples(st.floats(0, 1), st.integers(1, SHORT_NS)), max_size=30).map(
    lambda all_of_them: [
        Launcher(name=str(i), rate=rate, launch_ns=ns, occupied_ns=0, work_ns=0, waits=True)
        for i, (rate, ns) in enumerate(all_of_them)
    ]
)


@given(LAUNCHERS)
def test_windows_fill_the_period_one_after_the_other(launchers: list[Launcher]) -> None:
    words = words_of(launchers)
    if not words:
        return
    found = [bounds(words[each.name]) for each in launchers]
    assert found[0][0] == 0 and found[-1][1] == PERIOD_US
    assert all(before[1] == after[0] for before, after in pairwise(found))
    assert all(
        end - begin >= 2 * each.launch_ns / 1000 - 1 for each, (begin, end) in zip(launchers, found, strict=True)
    )


def test_windows_are_as_long_as_shares() -> None:
    one, two = launcher("one", rate=0.3), launcher("two", rate=0.6)
    assert [bounds(each) for each in words_of([one, two]).values()] == [(0, 6667), (6667, 20000)]


@pytest.mark.parametrize("count", [0, 1, PERIOD_US // MIN_US + 1])
def test_one_needs_no_window_and_too_many_have_no_room(count: int) -> None:
    assert words_of([launcher(str(i), rate=1 / count) for i in range(count)]) == {}


def test_no_window_is_too_short_for_a_launch() -> None:
    assert words_of([launcher("one", rate=0.05, launch_ns=2 * MS), launcher("two", rate=0.9)]) == {}


def launcher(name: str, *, rate: float = 0.5, launch_ns: int = MS // 10, waits: bool = False) -> Launcher:
    return Launcher(name=name, rate=rate, launch_ns=launch_ns, occupied_ns=0, work_ns=0, waits=waits)


class Work(Struct):
    """What a program gets done in a second without windows and with them, and for which part it has work."""

    name: str
    mixed: float
    alone: float
    rate: float = 0.5
    launch_ns: int = MS // 10
    occupied: float = 1.0


class BusyGpu:
    """Programs on a GPU, and when they had windows."""

    def __init__(self, *programs: Work) -> None:
        self.windows, self.now = LaunchWindows(), BEGIN
        self.programs = {each.name: each for each in programs}
        self.state = {each.name: launcher(each.name, rate=each.rate, launch_ns=each.launch_ns) for each in programs}
        self.words: Mapping[str, int] = {}

    def run(self, ns: int) -> list[bool]:
        """Whether there were windows, at each decision."""
        seen = []
        for _ in range(ns // TICK_NS):
            self.now += TICK_NS
            for name, each in self.programs.items():
                got = each.alone if self.words else each.mixed
                before = self.state[name]
                self.state[name] = structs.replace(
                    before,
                    work_ns=before.work_ns + int(got * TICK_NS),
                    occupied_ns=before.occupied_ns + int(each.occupied * TICK_NS),
                )
            self.words = self.windows.tick(self.now, list(self.state.values()))
            seen.append(bool(self.words))
        return seen


def helped(*changes: dict[str, float]) -> Sequence[Work]:
    """Two programs that get more done in windows."""
    pair = (Work("loop", mixed=0.49, alone=0.49), Work("sync", mixed=0.21, alone=0.43))
    return [structs.replace(each, **change) for each, change in zip(pair, changes or ({}, {}), strict=True)]


def test_windows_that_help_stay() -> None:
    machine = BusyGpu(*helped())
    first = machine.run(TRIAL_NS)
    assert not any(first[: (LOOK_NS + LACK_NS) // TICK_NS - 1]) and first[-1]
    assert all(machine.run(AGAIN_NS - 2 * TRIAL_NS))
    assert set(machine.words) == {"loop", "sync"}


def test_after_a_while_it_is_seen_what_all_do_without_them() -> None:
    machine = BusyGpu(*helped())
    machine.run(AGAIN_NS)
    again = machine.run(2 * TRIAL_NS)
    assert not all(again) and again[-1]
    assert again.count(False) <= LOOK_NS // TICK_NS + 3


def test_windows_that_do_not_help_end_and_are_tried_seldom() -> None:
    """Programs that compute on the CPU between two kernels, and leave windows unused."""
    machine = BusyGpu(Work("one", mixed=0.3, alone=0.2), Work("two", mixed=0.3, alone=0.2))
    opened = []
    for _ in range(60):
        seen = machine.run(10_000_000_000)
        opened.append(sum(seen) * TICK_NS)
    assert max(opened) <= 2 * LOOK_NS + SETTLE_NS + 2 * TICK_NS
    pauses = [opened.index(each, i) for i, each in enumerate(opened) if each]
    assert PAUSE_NS < MAX_PAUSE_NS and len(pauses) <= 7


def test_what_did_not_help_is_remembered_although_others_come_and_go() -> None:
    """Two programs that compute on the CPU, one of which begins and ends all the time."""
    machine = BusyGpu(Work("one", mixed=0.3, alone=0.2), Work("two", mixed=0.3, alone=0.2))
    machine.run(3 * TRIAL_NS)
    for _ in range(5):
        machine.programs["two"].occupied = 0.0
        machine.run(LOOK_NS)
        machine.programs["two"].occupied = 1.0
        assert not any(machine.run(2 * LOOK_NS))


def test_what_did_not_help_is_forgotten_when_it_did_not_help_many_others() -> None:
    """The first two would be tried again only after minutes."""
    machine = BusyGpu(Work("one", mixed=0.3, alone=0.2), Work("0", mixed=0.3, alone=0.2))
    machine.run(16 * PAUSE_NS)
    for number in (*range(1, MAX_FAILED + 1), 0):
        name, before = str(number), str((number or MAX_FAILED + 1) - 1)
        machine.programs[name] = structs.replace(machine.programs.pop(before), name=name)
        machine.state[name] = structs.replace(machine.state.pop(before), name=name)
        assert any(machine.run(3 * TRIAL_NS)), name


@pytest.mark.parametrize(
    ("why", "programs"),
    [
        ("one has nothing to do for most of the time", helped({}, {"occupied": 0.4})),
        ("launches are long", helped({}, {"launch_ns": SHORT_NS + 1})),
        ("its facade does not say what a launch takes", helped({}, {"launch_ns": 0})),
        ("one is alone", helped()[:1]),
        ("none lacks much", helped({"mixed": 0.49}, {"mixed": 0.46})),
    ],
)
def test_there_are_none_where(why: str, programs: Sequence[Work]) -> None:
    assert not any(BusyGpu(*programs).run(5_000_000_000)), why


@pytest.mark.parametrize(("launch_ns", "tried"), [(MS // 10, True), (MS, False)])
def test_they_are_tried_where_an_uncertain_account_holds_one_back_for_a_while(launch_ns: int, tried: bool) -> None:
    """The time of a change of the GPU is measured as work of short launches."""
    machine = BusyGpu(*helped({"mixed": 0.49}, {"mixed": 0.5, "launch_ns": launch_ns}))
    assert not any(machine.run(LACK_NS + LOOK_NS))
    machine.state["sync"] = structs.replace(machine.state["sync"], waits=True)
    assert not any(machine.run(LACK_NS - TICK_NS))
    assert any(machine.run(LOOK_NS)) is tried


def test_windows_by_which_one_gets_less_end() -> None:
    """The other one ignores its window."""
    machine = BusyGpu(Work("honest", mixed=0.45, alone=0.3), Work("other", mixed=0.3, alone=0.6))
    assert any(machine.run(3 * TRIAL_NS))
    assert not any(machine.run(PAUSE_NS - 2 * TRIAL_NS))


def test_after_a_pause_of_the_arbiter_all_is_compared_anew() -> None:
    machine = BusyGpu(*helped())
    for _ in range(10):
        machine.run(2 * TICK_NS)
        machine.now += 10 * LOOK_NS
    assert machine.run(2 * TRIAL_NS)[-1]


def test_windows_stay_where_they_are_used_although_no_more_is_done() -> None:
    """What is done without them is only estimated, and may be wrong."""
    machine = BusyGpu(Work("one", mixed=0.44, alone=0.44), Work("two", mixed=0.44, alone=0.44))
    machine.run(2 * TRIAL_NS)
    assert all(machine.run(PAUSE_NS))


def test_windows_that_stop_to_help_end() -> None:
    machine = BusyGpu(*helped())
    machine.run(TRIAL_NS)
    machine.programs["loop"] = Work("loop", mixed=0.49, alone=0.2)
    assert not machine.run(3 * LOOK_NS)[-1]


def test_windows_stay_where_they_do_not_help_for_a_moment() -> None:
    machine = BusyGpu(*helped())
    machine.run(2 * TRIAL_NS)
    machine.programs["loop"].alone = 0.0
    dip = machine.run(8 * TICK_NS)
    machine.programs["loop"].alone = 0.49
    assert all(dip) and all(machine.run(2 * LOOK_NS))


def test_windows_stay_with_less_work_than_they_begin_with() -> None:
    assert not any(BusyGpu(*helped({}, {"occupied": 0.6})).run(2 * TRIAL_NS))
    machine = BusyGpu(*helped())
    machine.run(TRIAL_NS)
    machine.programs["sync"].occupied = 0.6
    assert all(machine.run(2 * LOOK_NS))


@pytest.mark.parametrize("occupied", [0.4, 1.0])
def test_next_to_long_launches_there_are_none_unless_these_are_seldom(occupied: float) -> None:
    long = Work("long", mixed=0.1, alone=0.1, launch_ns=100 * MS, occupied=occupied)
    machine = BusyGpu(*helped(), long)
    machine.run(TRIAL_NS)
    assert machine.run(TRIAL_NS)[-1] is (occupied < 0.5)
    assert "long" not in machine.words


def test_windows_end_when_others_come_and_go() -> None:
    machine = BusyGpu(*helped())
    machine.run(TRIAL_NS)
    machine.programs["third"] = Work("third", mixed=0.1, alone=0.2)
    machine.state["third"] = launcher("third")
    seen = machine.run(TRIAL_NS)
    assert not seen[LOOK_NS // TICK_NS // 2]
    for name in ("third", "sync"):
        del machine.programs[name], machine.state[name]
    assert not machine.run(TRIAL_NS)[0]


WORDS = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, st.booleans()), min_size=2, max_size=20))
def test_whatever_tenants_write_is_no_error(words: list[tuple[int, int, int, bool]]) -> None:
    windows, now = LaunchWindows(), BEGIN
    for launch_ns, occupied_ns, work_ns, waits in words:
        now += 100 * MS
        honest = launcher("honest", waits=True)
        liar = structs.replace(
            honest, name="liar", launch_ns=launch_ns, occupied_ns=occupied_ns, work_ns=work_ns - (1 << 63), waits=waits
        )
        found = windows.tick(now, [liar, honest])
        assert all(0 <= begin < end <= PERIOD_US for begin, end in map(bounds, found.values()))
