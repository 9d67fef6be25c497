"""Calls that take long are left to their thread, and the calls that follow are made."""

import threading
from typing import Any

import pytest

from lamina.enforcement import container_files
from lamina.enforcement.container_files import FileCalls, TakesLong
from tests.waiting import wait_until


@pytest.fixture
def free() -> Any:
    """Set when the calls that wait for it may return."""
    event = threading.Event()
    yield event
    event.set()


def test_the_answers_are_what_the_calls_return_or_raise_in_their_order() -> None:
    calls = FileCalls()
    answers = calls.make([("a", lambda: 1), ("b", lambda: 1 // 0), ("c", lambda: 3)])
    assert answers[0] == 1
    assert isinstance(answers[1], ZeroDivisionError)
    assert answers[2] == 3
    assert calls.make([]) == []
    calls.close()


@pytest.mark.parametrize("slow", [set(), {0}, {1}, {2}, {0, 1}, {0, 2}, {0, 1, 2}])
def test_each_call_that_takes_long_is_left_and_all_others_are_answered(slow: set[int], free: threading.Event) -> None:
    calls, late = FileCalls(), []
    made = [(number, (lambda: free.wait() and "late") if number in slow else (lambda: "done")) for number in range(3)]
    answers = calls.make(made, lambda file, answer: late.append((file, answer)))
    assert [isinstance(answer, TakesLong) for answer in answers] == [number in slow for number in range(3)]
    assert {answer for number, answer in enumerate(answers) if number not in slow} <= {"done"}
    assert [calls.is_left(number) for number in range(3)] == [number in slow for number in range(3)]
    assert late == []
    free.set()
    wait_until(lambda: not any(map(calls.is_left, range(3))), "they stay left")
    assert sorted(late) == [(number, "late") for number in sorted(slow)]
    calls.close()


def test_a_file_is_left_until_what_comes_after_its_call_has_returned(free: threading.Event) -> None:
    calls, called = FileCalls(), threading.Event()
    after = threading.Event()

    def late(file: object, answer: object) -> None:
        called.set()
        after.wait()

    calls.make([("a", free.wait)], late)
    free.set()
    assert called.wait(60)
    assert calls.is_left("a")
    after.set()
    wait_until(lambda: not calls.is_left("a"), "it stays left")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_file_is_no_longer_left_when_what_it_was_left_to_fails(free: threading.Event) -> None:
    calls = FileCalls()
    calls.make([("a", free.wait)], lambda file, answer: 1 // 0)
    free.set()
    wait_until(lambda: not calls.is_left("a"), "it stays left")


def test_a_call_that_has_no_processor_is_waited_for(monkeypatch: pytest.MonkeyPatch, free: threading.Event) -> None:
    monkeypatch.setattr(container_files._Worker, "is_starved", property(lambda worker: True))
    calls = FileCalls(limit_s=0.001)
    threading.Timer(0.05, free.set).start()
    assert calls.make([("a", free.wait)]) == [True]
    monkeypatch.setattr(container_files, "_STARVED_S", 0.01)
    free.clear()
    assert [type(answer) for answer in calls.make([("a", free.wait)])] == [TakesLong]
