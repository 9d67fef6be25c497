"""What was known when the second began that a figure of the driver covers."""

from collections import deque
from typing import Generic, TypeVar

COVERED_NS = 1_000_000_000
"""The driver's figures are averages of so long a time before they were asked for."""
T = TypeVar("T")


class LastSecond(Generic[T]):
    """States over time, as far back as figures go."""

    def __init__(self) -> None:
        self._states: deque[tuple[int, T]] = deque()

    def add(self, now: int, state: T) -> tuple[int, T]:
        """Keep the state of now. Returns that of a second ago, or the first one, and when it was."""
        self._states.append((now, state))
        while len(self._states) > 1 and self._states[1][0] <= now - COVERED_NS:
            self._states.popleft()
        return self._states[0]

    def clear(self) -> None:
        """Forget all states."""
        self._states.clear()
