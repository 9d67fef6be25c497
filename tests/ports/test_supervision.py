"""A loop that fails starts again, is logged once, and still ends when it is canceled."""

import asyncio
import logging

import pytest

from lamina.errors import Outside
from lamina.ports.clock import FakeClock
from lamina.ports.set_aside import SetAside
from lamina.ports.supervision import LOOP, keep_running


@pytest.fixture
def aside() -> SetAside:
    return SetAside(logging.getLogger("test"))


async def test_a_loop_starts_again_until_it_returns(aside: SetAside, caplog: pytest.LogCaptureFixture) -> None:
    failures = [ValueError("defect"), ValueError("defect"), Outside("away")]

    async def loop() -> str:
        if failures:
            raise failures.pop(0)
        return "done"

    clock = FakeClock()
    task = asyncio.create_task(keep_running("a", loop, clock, aside))
    await clock.advance(5.0)
    assert await task == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "Setting aside loop a: defect",
        "Setting aside loop a: away",
    ]
    assert aside.counts == {LOOP: 2}


async def test_a_loop_whose_end_fails_ends_when_it_is_canceled(aside: SetAside) -> None:
    ends = iter([ValueError("defect")])

    async def loop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for error in ends:
                raise error

    clock = FakeClock()
    task = asyncio.create_task(keep_running("a", loop, clock, aside))
    await clock.advance(1.0)
    task.cancel()
    await clock.advance(1.0)
    assert task.cancelled()
    assert aside.counts == {LOOP: 1}
