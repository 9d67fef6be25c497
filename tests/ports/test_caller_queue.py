"""Callers that wait to be checked: sources take turns, and one that calls often delays only itself."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from lamina.ports.caller_queue import CallerQueue, Crowded
from tests.waiting import canceled

PLACES = 6


class Line:
    """Callers of one queue, who keep their turns until they may `leave`, and notes of what became of them."""

    def __init__(self) -> None:
        self.queue = CallerQueue(1, PLACES)
        self.served: list[str] = []
        self.refused: list[str] = []
        self.leave = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def _call(self, source: str, name: str) -> None:
        try:
            async with self.queue.turn(source):
                self.served.append(name)
                await self.leave.wait()
        except Crowded:
            self.refused.append(name)

    async def call(self, *names: str) -> list[asyncio.Task[None]]:
        """Calls from the source that is the first letter of each name."""
        made = [asyncio.create_task(self._call(name[0], name)) for name in names]
        self.tasks += made
        for _ in range(4):
            await asyncio.sleep(0)
        return made

    async def finish(self) -> None:
        self.leave.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    yield made
    await made.finish()


async def test_sources_take_turns(line: Line) -> None:
    await line.call("a1", "a2", "a3", "b1", "c1")
    await line.finish()
    assert line.served == ["a1", "a2", "b1", "c1", "a3"]


async def test_a_source_that_fills_the_line_gives_way_to_others(line: Line) -> None:
    await line.call(*(f"a{number}" for number in range(PLACES)))
    await line.call("b1", "b2")
    assert line.refused == ["a5", "a4"]
    await line.finish()
    assert line.served == ["a0", "a1", "b1", "a2", "b2", "a3"]


async def test_a_full_line_refuses_who_has_as_much_as_others(line: Line) -> None:
    await line.call("a0", "b1", "c1", "d1", "e1", "f1", "g1", "b2")
    assert line.refused == ["g1", "b2"]


@pytest.mark.parametrize(("which", "gone"), [(0, ""), (1, "a2"), (3, "b2")])
async def test_a_caller_that_goes_away_leaves_its_place(line: Line, which: int, gone: str) -> None:
    calls = await line.call("a1", "a2", "b1", "b2")
    await canceled(calls[which])
    await line.call("c1")
    await line.finish()
    assert set(line.served) == {"a1", "a2", "b1", "b2", "c1"} - {gone} and line.refused == []


async def test_whatever_happens_to_callers_all_turns_come_back(line: Line) -> None:
    """Some are refused, some go away while they wait, and some at the moment when they get their turn."""
    calls = await line.call("a1", "a2", "b1", "a3", "b2", "a4", "c1", "c2", "a5")
    calls[2].cancel()
    line.leave.set()
    calls[0].add_done_callback(lambda _: calls[1].cancel())
    await line.finish()
    assert line.queue._busy == 0 and not line.queue._waiting
    async with line.queue.turn("z"):
        assert line.queue._busy == 1
