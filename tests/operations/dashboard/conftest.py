"""A browser, and a page in it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lamina.operations.dashboard.board import Board
from lamina.ports.clock import SystemClock
from tests.browser import browser
from tests.operations.dashboard.pages import Page
from tests.operations.dashboard.servers import server_of


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
async def page(driver: Any) -> AsyncIterator[Page]:
    board = Board()
    async with server_of(board, SystemClock(), namespace="team").serving(0) as address:
        await asyncio.to_thread(driver.get_log, "performance")
        await asyncio.to_thread(driver.get, address)
        yield Page(driver, board, address)
        await asyncio.to_thread(driver.get, "about:blank")
