"""When a daemon that failed may start again: at once the first time, then after growing pauses. Pure."""

from lamina.ports.polling import RetryPauses

PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 60.0
"""A daemon that ran this long did not fail at its start, so the next pause is the first one again."""


class RestartBackoff:
    """For one daemon. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._pauses = RetryPauses(PAUSES_S)
        self._not_before = float("-inf")
        self._running_since: float | None = None
        self.timeouts = 0
        """How many requests in a row the daemon did not answer in time."""

    def may_start(self, now: float) -> bool:
        return now >= self._not_before

    def record_start(self, now: float) -> None:
        """The daemon is started now; the next start waits for its pause."""
        self._not_before = now + self._pauses.failed()
        self._running_since = None
        self.timeouts = 0

    def record_success(self, now: float) -> None:
        """The daemon answers and has its limits."""
        self.timeouts = 0
        if self._running_since is None:
            self._running_since = now
        elif now - self._running_since >= STEADY_S:
            self._pauses.succeeded()
            self._not_before = float("-inf")
