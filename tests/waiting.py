"""Waits for what real processes, threads and sockets do: asks until the answer is true, up to a deadline.

What waits by a clock gets a `FakeClock` instead, which the test advances.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lamina.ports.clock import Clock, FakeClock

T = TypeVar("T")

PATIENCE_S = 120.0
FIRST_PAUSE_S, LAST_PAUSE_S = 0.01, 0.2
"""Many questions start a process, so the pauses between them grow."""

Otherwise = str | Callable[[], object]
"""What the failure says, or a function that returns it."""


def wait_until(ask: Callable[[], T], otherwise: Otherwise = "", within_s: float = PATIENCE_S) -> T:
    """The first true answer. Fails with what `otherwise` says when there is none in time."""
    end, pause_s = time.monotonic() + within_s, FIRST_PAUSE_S
    while not (answer := ask()):
        assert time.monotonic() < end, too_late(otherwise, within_s)
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, LAST_PAUSE_S)
    return answer


async def canceled(*tasks: "asyncio.Task[Any]") -> None:
    """End tasks that would go on. Raises what one of them has ended with by itself."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


async def until(
    ask: Callable[[], T | Awaitable[T]],
    otherwise: Otherwise = "",
    within_s: float = PATIENCE_S,
    *,
    task: "asyncio.Task[None] | None" = None,
    clock: Clock | None = None,
    step_s: float = 0.05,
) -> T:
    """As `wait_until`, for what happens in or outside of this event loop. Raises what ends `task` before.

    A fake `clock` goes on by `step_s` before each further question.
    """
    end = time.monotonic() + within_s
    while True:
        asked = ask()
        answer: T = await asked if inspect.isawaitable(asked) else asked  # type: ignore[assignment]
        if answer:
            return answer
        if task is not None and task.done():
            task.result()
        assert time.monotonic() < end, too_late(otherwise, within_s)
        if isinstance(clock, FakeClock):
            await clock.advance(step_s)
        await asyncio.sleep(FIRST_PAUSE_S)


def too_late(otherwise: Otherwise, within_s: float) -> str:
    return f"not within {within_s:g} s: {otherwise() if callable(otherwise) else otherwise}"
