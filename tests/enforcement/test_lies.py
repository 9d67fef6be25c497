"""What a container writes into its own `usage` costs no other container its share: one test per kind of lie."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

from lamina.enforcement import layout
from lamina.enforcement.activity import Activity
from lamina.enforcement.driver_factors import DriverFactors
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.work_credit import MEASURED, ReportedWork, WorkCredit
from tests.enforcement.neighbors import BEGIN, END_MS, MS, SETTLED_MS, Driver, Lie, Words, share_next_to, tenant

POINTS = 2.0
WINDOW_MS = 120


def finished_work(words: Words, now: int) -> None:
    words.bins = {now // MS - back: (0, 1000) for back in range(WINDOW_MS)}


def brief_work(words: Words, now: int) -> None:
    words.bins = {now // MS - back: (1000, 0) for back in range(WINDOW_MS)}


def work_of_many_processes(words: Words, now: int) -> None:
    words.bins = {now // MS - back: (0, layout.MAX_OTHERS) for back in range(WINDOW_MS)}


def unfinished_work(words: Words, now: int) -> None:
    words.busy_since = now - 1000 * MS


def unfinished_work_of_many_processes(words: Words, now: int) -> None:
    words.busy_since, words.processes = now - 1000 * MS, (1 << 32) - 1


def finished_work_withdrawn(words: Words, now: int) -> None:
    words.bins = {}
    if now // MS // 10 % 2:
        finished_work(words, now)


def unfinished_work_withdrawn(words: Words, now: int) -> None:
    words.busy_since = now - 1000 * MS if now // MS // 10 % 2 else 0


def request_for_time(words: Words, now: int) -> None:
    words.asked_at = now


def signal_of_work(words: Words, now: int) -> None:
    words.signals = True


def waiting(words: Words, now: int) -> None:
    words.asked_at = words.waited_at = now


def stamps_of_the_future(words: Words, now: int) -> None:
    words.busy_since = words.asked_at = words.waited_at = now + 1_000_000 * MS
    words.bins = {now // MS + ahead: (1000, 1000) for ahead in range(WINDOW_MS)}


def stamps_of_long_ago(words: Words, now: int) -> None:
    words.busy_since = words.asked_at = words.waited_at = BEGIN - 100_000 * MS


def its_own_account(words: Words, now: int) -> None:
    words.own = {"due": 0, "refund_ns": 1 << 60, "busy_ns": 1 << 60, "waited_ns": 1 << 60}


LIES: tuple[tuple[Lie, int], ...] = (
    (finished_work, 1),
    (brief_work, 1),
    (work_of_many_processes, 1),
    (unfinished_work, 1),
    (unfinished_work_of_many_processes, 1),
    (finished_work_withdrawn, 1),
    (unfinished_work_withdrawn, 1),
    (signal_of_work, 0),
)
"""Each with the priority of the container that lies. Where everything is believed they change a neighbor's share."""
HARMLESS: tuple[tuple[Lie, int], ...] = (
    (waiting, 1),
    (request_for_time, 0),
    (signal_of_work, 1),
    (stamps_of_the_future, 0),
    (stamps_of_long_ago, 0),
    (its_own_account, 1),
)
"""They change nothing, because nothing that the arbiter decides for others depends on them."""


def named(lies: tuple[tuple[Lie, int], ...]) -> list[str]:
    return [f"{lie.__name__}-{priority}" for lie, priority in lies]


@contextmanager
def everything_believed() -> Iterator[None]:
    def first(self: WorkCredit, report: ReportedWork, signals: bool, elapsed_ms: float) -> bool:
        return True

    with (
        mock.patch.object(
            WorkCredit, "believe", lambda self, reports, now, trust: [report.activity for report in reports]
        ),
        mock.patch.object(WorkCredit, "charge", lambda self, real: None),
        mock.patch.object(WorkCredit, "may_be_first", first),
        mock.patch.object(DriverFactors, "observe", lambda self, now, estimated: None),
    ):
        yield


def share(lie: Lie, priority: int, driver: Driver) -> float:
    """Percent of the GPU that a container with a cap of 30 % gets."""
    return share_next_to(tenant("it", 0.3), tenant("liar", 0.3, priority=priority), lie, driver=driver)


@pytest.mark.parametrize(("lie", "priority"), LIES + HARMLESS, ids=named(LIES + HARMLESS))
def test_a_lie_does_not_change_the_share_of_a_neighbor(lie: Lie, priority: int) -> None:
    assert share(lie, priority, Driver()) == pytest.approx(30, abs=POINTS)


@pytest.mark.parametrize(("lie", "priority"), LIES, ids=named(LIES))
def test_the_same_lie_changes_it_where_everything_is_believed(lie: Lie, priority: int) -> None:
    """The null control."""
    with everything_believed():
        assert abs(share(lie, priority, Driver()) - 30) > 2 * POINTS


@pytest.mark.parametrize(("lie", "priority"), LIES, ids=named(LIES))
def test_a_lie_without_a_process_on_the_gpu_changes_nothing(lie: Lie, priority: int) -> None:
    assert share(lie, priority, Driver(processes=0)) == pytest.approx(30, abs=POINTS)


@pytest.mark.parametrize(("lie", "priority"), LIES, ids=named(LIES))
def test_where_the_driver_confirms_nothing_a_lie_gives_away_what_is_the_liars(lie: Lie, priority: int) -> None:
    found = share(lie, priority, Driver(measures=False))
    assert 30 - POINTS <= found <= 60 + POINTS, "no less than its share, and no more than both shares"


def honest(works: set[int]) -> Lie:
    """The words of a container that works in these ms."""

    def tell(words: Words, now: int) -> None:
        last = (now - BEGIN) // MS
        words.bins = {BEGIN // MS + ms: (0, 1000) for ms in range(last - WINDOW_MS, last) if ms in works}
        words.asked_at = now

    return tell


def next_to_work(priority: int, driver: Driver, tenths: int) -> float:
    """What the container gets next to one that works for so many ms of each 10."""
    working = {ms for ms in range(END_MS) if ms % 10 < tenths}
    other = tenant("other", 0.5, priority=priority)
    return share_next_to(tenant("it", 0.3), other, honest(working), driver=driver, works=working.__contains__)


@pytest.mark.parametrize("driver", [Driver(), Driver(measures=False), Driver(trusted=True)], ids=str)
def test_next_to_honest_work_a_share_is_what_it_would_be_alone(driver: Driver) -> None:
    assert next_to_work(1, driver, 5) == pytest.approx(30, abs=POINTS)


def next_to_hidden_work(settled_ms: int = SETTLED_MS) -> float:
    """What the container gets next to one that works all the time and claims nothing."""
    return share_next_to(
        tenant("it", 0.3),
        tenant("other", 0.5),
        lambda words, now: None,
        driver=Driver(),
        works=lambda ms: True,
        settled_ms=settled_ms,
    )


@pytest.mark.parametrize(("settled_ms", "more"), [(SETTLED_MS, 6), (20_000, POINTS)])
def test_hidden_work_takes_nothing_of_the_share_of_a_neighbor(settled_ms: int, more: float) -> None:
    """Until it is known how much is hidden, the neighbor is charged less than what it gets."""
    assert 30 - POINTS <= next_to_hidden_work(settled_ms) <= 30 + more


def test_hidden_work_takes_half_of_it_where_everything_is_believed() -> None:
    """The null control."""
    with everything_believed():
        assert next_to_hidden_work() < 20


def test_work_that_has_ended_and_that_the_driver_still_reports_is_not_hidden() -> None:
    worked = set(range(END_MS // 2))
    found = share_next_to(
        *(tenant("it", 0.3), tenant("other", 0.5)), honest(worked), driver=Driver(), works=worked.__contains__
    )
    assert found == pytest.approx(30, abs=POINTS)


def test_work_beyond_a_share_is_given_back_as_far_as_the_driver_confirms_it() -> None:
    assert next_to_work(1, Driver(), 10) == pytest.approx(30, abs=POINTS)


def test_work_that_the_driver_confirms_comes_first() -> None:
    assert next_to_work(0, Driver(), 10) < POINTS


@pytest.mark.parametrize("tenths", [1, 5])
def test_what_work_of_a_higher_priority_leaves_is_for_the_others(tenths: int) -> None:
    assert next_to_work(0, Driver(), tenths) == pytest.approx(30, abs=POINTS)


def test_priority_does_not_count_where_the_driver_confirms_nothing() -> None:
    assert next_to_work(0, Driver(measures=False), 5) == pytest.approx(30, abs=POINTS)


def test_work_comes_first_at_once_however_long_a_lie_before_it_was() -> None:
    """Ten seconds of it use up the credit, and leave no debt."""
    credit, said = WorkCredit(), []
    for tick in range(1, 1003):
        driver = Confirmation(1, float(tick > 1000))
        both = [ReportedWork(name, Activity(), driver, 0.5) for name in ("liar", "other")]
        credit.believe(both, tick * 10_000_000, MEASURED)
        said.append(credit.may_be_first(both[0], True, 10.0))
    assert said[0] and not said[999] and said[1001]
