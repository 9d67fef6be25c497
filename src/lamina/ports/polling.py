"""Loops that repeat an action, how long they pause after failures, and which failures they log."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lamina.errors import LaminaError, Outside
from lamina.ports.clock import Clock

T = TypeVar("T")

RETRY_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Pauses after the first failures in a row; the last one repeats."""


class RetryPauses:
    """Growing pauses after failures in a row."""

    def __init__(self, pauses_s: Sequence[float] = RETRY_PAUSES_S) -> None:
        self.count = 0
        """Failures in a row until now."""
        self._pauses_s = pauses_s

    def succeeded(self) -> None:
        self.count = 0

    def failed(self) -> float:
        """How many seconds to wait now."""
        self.count += 1
        return self._pauses_s[min(self.count, len(self._pauses_s)) - 1]


class FailureLog:
    """Logs failures and tells how long to pause after each.

    A failure is logged when it differs from the one before it. So are, as reminders, the 11th and every 100th after
    the first in a row. One that is no error of Lamina's own is a defect and logged with its traceback.
    """

    def __init__(
        self,
        logger: logging.Logger,
        message: str,
        *,
        level: int = logging.WARNING,
        pauses_s: Sequence[float] = RETRY_PAUSES_S,
    ) -> None:
        """`message` has one %s for the error."""
        self._logger = logger
        self._message = message
        self._level = level
        self._pauses = RetryPauses(pauses_s)
        self._last = ""

    @property
    def count(self) -> int:
        """Failures in a row until now."""
        return self._pauses.count

    def failed(self, error: Exception) -> float:
        """Log the failure if that says something new. Returns how many seconds to wait before the next attempt."""
        before = self.count
        if str(error) != self._last or before == 10 or before % 100 == 0:
            if isinstance(error, LaminaError):
                self._logger.log(self._level, self._message, error)
            else:
                self._logger.error(self._message, error, exc_info=error)
        self._last = str(error)
        return self._pauses.failed()

    def succeeded(self) -> None:
        self._last = ""
        self._pauses.succeeded()


async def poll(
    action: Callable[[], Awaitable[None]],
    clock: Clock,
    *,
    every_s: float,
    delay_s: float = 0.0,
    retry_s: float | None = None,
    failures: FailureLog | None = None,
    on: type[Exception] = Outside,
) -> None:
    """Run `action` forever, first after `delay_s`, then with `every_s` seconds between two runs.

    With `failures`, errors of the type `on` are logged there, and the next run is after `retry_s`, if that is given.
    Other errors are raised.
    """
    if delay_s:
        await clock.sleep(delay_s)
    while True:
        pause_s = every_s
        try:
            await action()
        except on as error:
            if failures is None:
                raise
            failures.failed(error)
            pause_s = every_s if retry_s is None else retry_s
        else:
            if failures is not None:
                failures.succeeded()
        await clock.sleep(pause_s)


async def retry(
    action: Callable[[], Awaitable[T]],
    clock: Clock,
    *,
    every_s: float,
    failed: Callable[[Exception], object],
    on: type[Exception] = Outside,
) -> T:
    """Run `action` until it raises no `on`, with `every_s` seconds between two attempts, and return its result.

    `failed` is called with each failure.
    """
    while True:
        try:
            return await action()
        except on as error:
            failed(error)
        await clock.sleep(every_s)
