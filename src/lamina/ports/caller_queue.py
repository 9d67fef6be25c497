"""Turns of callers that the API server has to check. Anyone may call, so a bounded number of them has a place.

Sources, such as addresses, take turns, so one that calls often delays itself. Where all places are taken, the caller
that came last from the source with the most of them is refused, and not one from a source that has few.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Crowded(Exception):
    """There is no place for this caller."""


class CallerQueue:
    """`at_once` callers have their turn at a time, and `places` is how many have it or wait for it."""

    def __init__(self, at_once: int, places: int) -> None:
        self._at_once = at_once
        self._places = places
        self._busy = 0
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By source, the next one first. None is empty."""

    @contextlib.asynccontextmanager
    async def turn(self, source: str) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the context. Raises Crowded."""
        if self._busy < self._at_once:
            self._busy += 1
        else:
            await self._wait(source)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, source: str) -> None:
        if self._busy + sum(map(len, self._waiting.values())) >= self._places:
            self._make_room(source)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(source, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove(source, turn)
            elif turn.exception() is None:
                self._pass_on()
            raise

    def _make_room(self, source: str) -> None:
        """Refuse the last caller of the source with the most, or raise Crowded where `source` has about as many."""
        largest = max(self._waiting, key=lambda each: len(self._waiting[each]), default=source)
        if len(self._waiting.get(largest, ())) <= len(self._waiting.get(source, ())) + 1:
            raise Crowded
        last = self._waiting[largest][-1]
        self._remove(largest, last)
        last.set_exception(Crowded())

    def _remove(self, source: str, turn: asyncio.Future[None]) -> None:
        self._waiting[source].remove(turn)
        if not self._waiting[source]:
            del self._waiting[source]

    def _pass_on(self) -> None:
        """Give the turn to the next caller of the next source, which then is the last in line."""
        if not self._waiting:
            self._busy -= 1
            return
        source = next(iter(self._waiting))
        callers = self._waiting.pop(source)
        callers.popleft().set_result(None)
        if callers:
            self._waiting[source] = callers
