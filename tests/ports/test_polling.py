"""Loops that repeat an action: when they run it, and what they log."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import BadInput, Outside
from lamina.ports.clock import FakeClock
from lamina.ports.polling import FailureLog, RetryPauses, poll, retry

log = logging.getLogger(__name__)


class Action:
    """Raises the errors of its script one after the other, then returns the number of runs."""

    def __init__(self, *script: str) -> None:
        self.script = list(script)
        self.runs = 0

    async def __call__(self) -> int:
        self.runs += 1
        message = self.script.pop(0) if self.script else ""
        if message:
            raise Outside(message)
        return self.runs

    async def look(self) -> None:
        await self()


async def test_poll_runs_the_action_at_every_interval() -> None:
    clock, action = FakeClock(), Action()
    task = asyncio.create_task(poll(action.look, clock, every_s=2.0, failures=FailureLog(log, "%s")))
    await clock.advance(5.0)
    assert action.runs == 3
    task.cancel()


async def test_poll_logs_a_failure_only_when_it_differs_from_the_last(caplog: pytest.LogCaptureFixture) -> None:
    clock, action = FakeClock(), Action("a", "a", "b", "", "b", "b")
    task = asyncio.create_task(poll(action.look, clock, every_s=1.0, failures=FailureLog(log, "failed: %s")))
    await clock.advance(10.0)
    assert [record.getMessage() for record in caplog.records] == ["failed: a", "failed: b", "failed: b"]
    task.cancel()


async def test_poll_raises_what_is_not_an_outside_failure() -> None:
    async def broken() -> None:
        raise ValueError("defect")

    with pytest.raises(ValueError, match="defect"):
        await poll(broken, FakeClock(), every_s=1.0, failures=FailureLog(log, "%s"))


async def test_poll_waits_before_the_first_run_where_that_is_asked_for() -> None:
    clock, action = FakeClock(), Action()
    task = asyncio.create_task(poll(action.look, clock, every_s=2.0, delay_s=3.0))
    await clock.advance(2.9)
    assert action.runs == 0
    await clock.advance(0.2)
    assert action.runs == 1
    await clock.advance(2.0)
    assert action.runs == 2
    task.cancel()


async def test_poll_pauses_otherwise_after_a_failure_where_that_is_asked_for() -> None:
    clock, action = FakeClock(), Action("", "a", "a")
    task = asyncio.create_task(poll(action.look, clock, every_s=1.0, retry_s=10.0, failures=FailureLog(log, "%s")))
    runs = []
    for _ in range(24):
        runs.append(action.runs)
        await clock.advance(1.0)
    assert [runs.index(number) for number in range(2, 6)] == [1, 11, 21, 22]
    task.cancel()


async def test_poll_without_a_log_raises_failures() -> None:
    with pytest.raises(Outside, match="a"):
        await poll(Action("a").look, FakeClock(), every_s=1.0)


async def test_poll_logs_the_type_of_failure_that_it_is_given(caplog: pytest.LogCaptureFixture) -> None:
    async def invalid() -> None:
        raise BadInput("no number")

    clock = FakeClock()
    task = asyncio.create_task(poll(invalid, clock, every_s=1.0, failures=FailureLog(log, "refused: %s"), on=BadInput))
    await clock.advance(0.5)
    assert [record.getMessage() for record in caplog.records] == ["refused: no number"]
    task.cancel()
    with pytest.raises(BadInput):
        await poll(invalid, clock, every_s=1.0, failures=FailureLog(log, "%s"))


async def test_retry_returns_the_first_result(caplog: pytest.LogCaptureFixture) -> None:
    clock, action = FakeClock(), Action("a", "a")
    failures = FailureLog(log, "waiting: %s")
    task = asyncio.create_task(retry(action, clock, every_s=1.0, failed=failures.failed))
    await clock.advance(1.5)
    assert not task.done()
    await clock.advance(1.0)
    assert await task == 3
    assert [record.getMessage() for record in caplog.records] == ["waiting: a"]


async def test_retry_raises_other_errors() -> None:
    failures = FailureLog(log, "%s")
    with pytest.raises(Outside, match="a"):
        await retry(Action("a"), FakeClock(), every_s=1.0, failed=failures.failed, on=ValueError)
    assert failures.count == 0


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6), st.integers(1, 300))
def test_pauses_follow_the_table_and_the_last_one_repeats(table: list[float], failures: int) -> None:
    pauses = RetryPauses(table)
    assert [pauses.failed() for _ in range(failures)] == (table + table[-1:] * failures)[:failures]
    assert pauses.count == failures
    pauses.succeeded()
    assert pauses.count == 0 and pauses.failed() == table[0]


def logged(caplog: pytest.LogCaptureFixture, *errors: Exception | None) -> list[int]:
    """The indexes of the failures that are logged; None is a success."""
    failures, indexes = FailureLog(log, "failed: %s"), []
    for index, error in enumerate(errors):
        caplog.clear()
        if error is None:
            failures.succeeded()
        else:
            failures.failed(error)
        if caplog.records:
            indexes.append(index)
    return indexes


def test_a_failure_that_lasts_is_logged_again_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    assert logged(caplog, *[Outside("a")] * 201) == [0, 10, 100, 200]


def test_another_failure_and_one_after_a_success_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    a, b = Outside("a"), Outside("b")
    assert logged(caplog, a, a, b, b, a, None, a, a, None, b) == [0, 2, 4, 6, 9]


def test_reminders_count_from_the_first_failure_after_a_success(caplog: pytest.LogCaptureFixture) -> None:
    a = Outside("a")
    assert logged(caplog, *[a] * 9, None, *[a] * 12) == [0, 10, 20]


def test_what_is_no_error_of_lamina_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    failures = FailureLog(log, "failed: %s", level=logging.INFO)
    with caplog.at_level(logging.INFO):
        failures.failed(Outside("down"))
        failures.failed(KeyError("defect"))
    expected, defect = caplog.records
    assert expected.levelno == logging.INFO and expected.exc_info is None
    assert defect.levelno == logging.ERROR and defect.exc_info is not None and defect.exc_info[0] is KeyError


def test_a_failure_log_tells_the_pause() -> None:
    failures = FailureLog(log, "%s", pauses_s=(1.0, 4.0))
    assert [failures.failed(Outside("a")) for _ in range(3)] == [1.0, 4.0, 4.0]
    failures.succeeded()
    assert failures.failed(Outside("a")) == 1.0
