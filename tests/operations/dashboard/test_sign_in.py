"""Two viewers with different rights, each in a real browser."""

import asyncio
from typing import Any

import pytest

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.viewers import KEPT_S
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.listener import Address, listening
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page
from tests.operations.dashboard.servers import viewer_server_of
from tests.operations.dashboard.viewers import ViewersKube, two_teams

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())


async def signed_in(page: Page, token: str) -> None:
    await asyncio.to_thread(page.driver.get, page.address)
    await page.until("document.querySelector('#sign-in').open")
    await page.run("document.querySelector('#token').focus()")
    await page.keys(token, "\ue007")  # Enter


async def test_a_login_that_expires_hides_what_was_shown_and_asks_again(driver: Any) -> None:
    board, clock, kube = Board(), FakeClock(), ViewersKube()
    board.post(two_teams())
    server = viewer_server_of(board, clock, kube)
    async with listening("the dashboard", server.application(), Address("127.0.0.1", 0)) as address:
        page = Page(driver, board, f"http://{address}/")
        await signed_in(page, "of-a")
        await page.until("document.body.innerText.includes('a-pod')")
        del kube.rights["of-a"]
        await clock.advance(KEPT_S + 1)
        board.post(two_teams())
        await page.until("document.querySelector('#sign-in').open")
        assert (await page.run("document.querySelector('#sign-in-problem').textContent")).startswith("send a token")
        await page.until("!document.body.innerText.includes('a-pod')")
        board.close()
        await asyncio.to_thread(driver.get, "about:blank")


async def test_each_viewer_sees_the_own_namespace(driver: Any) -> None:
    board, clock = Board(), SystemClock()
    board.post(two_teams())
    server = viewer_server_of(board, clock, ViewersKube())
    async with listening("the dashboard", server.application(), Address("127.0.0.1", 0)) as address:
        page = Page(driver, board, f"http://{address}/")
        await signed_in(page, "wrong")
        await page.until("document.querySelector('#sign-in-problem').textContent.startsWith('send a token')")
        assert "team-" not in await page.run("document.documentElement.innerText")
        await signed_in(page, "of-a")
        await page.status("Live")
        await page.until("document.querySelectorAll('#pod-rows tr').length === 2")
        shown = await page.run("document.body.innerText")
        assert "a-pod" in shown and "waits" in shown and "b-pod" not in shown and "team-b" not in shown
        assert await page.texts("nav a") == ["Pods", "My pods"]
        await signed_in(page, "of-b")
        await page.status("Live")
        await page.run("void (location.hash = '#/node/n')")
        await page.until("document.querySelectorAll('.share').length > 0")
        assert await page.texts(".memory .share") == ["b-pod", "other namespaces"]
        assert "a-pod" not in await page.run("document.documentElement.outerHTML")
        board.close()
        await asyncio.to_thread(driver.get, "about:blank")
