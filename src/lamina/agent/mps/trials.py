"""When a daemon that does not run may be started again: at once at first, then ever later. Pure."""

PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 60.0
"""Who ran so long did not fail at its start, so the next pause is the first again."""


class Trials:
    """Those of one daemon. Moments are seconds of any one monotonic clock."""

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = float("-inf")
        self._well_since: float | None = None
        self.silent = 0
        """How often in a row it gave no answer in time."""

    def may_start(self, now: float) -> bool:
        return now >= self._not_before

    def began(self, now: float) -> None:
        """It is started now; the next time is not before its pause is over."""
        self._not_before = now + PAUSES_S[min(self._failures + 1, len(PAUSES_S) - 1)]
        self._failures += 1
        self._well_since = None
        self.silent = 0

    def well(self, now: float) -> None:
        """It answers and has its limits."""
        self.silent = 0
        if self._well_since is None:
            self._well_since = now
        elif now - self._well_since >= STEADY_S:
            self._failures, self._not_before = 0, float("-inf")
