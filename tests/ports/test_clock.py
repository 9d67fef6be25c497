"""The fake clock wakes sleepers in the order of their moments, each at its own."""

import asyncio

import pytest

from lamina.ports.clock import FakeClock, SystemClock, within


async def test_sleepers_wake_at_their_moments() -> None:
    clock = FakeClock(100.0)
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper("a", 3, 3)), asyncio.create_task(sleeper("b", 2, 2, 2))]
    await clock.advance(4)
    assert woken == [("b", 102.0), ("a", 103.0), ("b", 104.0)]
    await clock.advance(2)
    assert sorted(woken[3:]) == [("a", 106.0), ("b", 106.0)]
    assert clock.wall() == 106.0
    await asyncio.gather(*tasks)


async def test_a_cancelled_sleeper_disturbs_no_other() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1))
    await asyncio.sleep(0)
    task.cancel()
    await clock.advance(2)
    assert task.cancelled()


async def test_what_is_awaited_within_a_time_is_canceled_after_it() -> None:
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(within(clock, 2, event.wait()))
    await clock.advance(1)
    event.set()
    assert await waiting
    event.clear()
    inner = asyncio.create_task(event.wait())
    waiting = asyncio.create_task(within(clock, 2, inner))
    await clock.advance(1)
    assert not waiting.done()
    await clock.advance(1)
    with pytest.raises(TimeoutError):
        await waiting
    assert inner.cancelled()


async def test_who_is_canceled_while_waiting_cancels_what_is_awaited() -> None:
    clock, event = FakeClock(), asyncio.Event()
    inner = asyncio.create_task(event.wait())
    waiting = asyncio.create_task(within(clock, 2, inner))
    await clock.advance(1)
    waiting.cancel()
    await clock.advance(0)
    assert waiting.cancelled() and inner.cancelled()


async def test_the_system_clock_goes_on() -> None:
    clock = SystemClock()
    before, wall = clock.monotonic(), clock.wall()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert wall > 1_600_000_000
