"""When a container may be tried again. Times are arguments, in seconds."""

from msgspec import Struct

CRASH_FIRST_S = 1.0
MAX_CRASH_PAUSE_S = 30.0
RETRY_FIRST_S = 2.0
MAX_RETRY_PAUSE_S = 10.0


class CrashBackoff(Struct):
    """The back-off of containers that end: restarted at once, then after 1, 2, 4 ... seconds.

    A real kubelet starts with 10 s and stops at 300 s. A container that ran twice the longest delay starts over.
    """

    delay_s: float = 0.0
    last_start: float = 0.0

    def not_before(self, finished_at: float) -> float:
        """The earliest time for the next start after an end at `finished_at`."""
        return finished_at if self._forgotten(finished_at) else finished_at + self.delay_s

    def restarting(self, finished_at: float, now: float) -> None:
        """The container that ended at `finished_at` is being restarted."""
        fresh = self.delay_s == 0 or self._forgotten(finished_at)
        self.delay_s = CRASH_FIRST_S if fresh else min(self.delay_s * 2, MAX_CRASH_PAUSE_S)
        self.last_start = now

    def _forgotten(self, finished_at: float) -> bool:
        return finished_at - self.last_start > 2 * MAX_CRASH_PAUSE_S


class RetryBackoff(Struct):
    """The back-off of failures before a container exists: 2, 4, 8, 10, 10 ... seconds."""

    delay_s: float = 0.0
    not_before: float = 0.0

    def failed(self, now: float) -> None:
        self.delay_s = RETRY_FIRST_S if self.delay_s == 0 else min(self.delay_s * 2, MAX_RETRY_PAUSE_S)
        self.not_before = now + self.delay_s

    def succeeded(self) -> None:
        self.delay_s = 0.0
        self.not_before = 0.0
