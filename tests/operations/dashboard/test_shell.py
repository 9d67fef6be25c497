"""What surrounds every view: whether it is live, what it asks and of whom, and that names stay text."""

import asyncio
import json
from typing import Any

import pytest

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures
from lamina.ports.clock import SystemClock
from lamina.report.cluster_use import ClusterUse
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, small
from tests.operations.dashboard.servers import server_of

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
HOSTILE = "<img src=x onerror=\"document.title='spoiled'\">"
VIEWS = ("overview", "map", "node/n", "what-if")


async def test_it_is_live_only_with_a_cluster_that_was_read(page: Page) -> None:
    await page.status("The command cannot follow the cluster: the cluster has not been read yet")
    page.board.post(small())
    await page.status("Live")
    assert await page.run("document.body.dataset.state") == "live"


async def test_a_lost_api_server_is_said(page: Page) -> None:
    page.board.post(small())
    await page.status("Live")
    page.board.lose("the Kubernetes server does not answer")
    await page.status("The command cannot follow the cluster: the Kubernetes server does not answer.")
    assert await page.run("document.body.dataset.state") == "lost"
    page.board.post(small())
    await page.status("Live")


async def test_what_is_not_in_force_or_not_known_is_said(page: Page) -> None:
    page.board.post(ClusterDocument(cluster=ClusterFigures(configuration="line 3 is odd", left_out=2)))
    page.board.use(ClusterUse(), "http://agent cannot be read: no answer", 5.0)
    await page.until("document.querySelectorAll('#warnings li').length === 3")
    assert await page.texts("#warnings li") == [
        "The previous configuration is in force: line 3 is odd",
        "2 pods could not be read.",
        "The use of some containers is not known: http://agent cannot be read: no answer",
    ]


async def test_a_command_that_ended_is_said(driver: Any) -> None:
    board = Board()
    board.post(small())
    async with server_of(board, SystemClock()).serving(0) as address:
        page = Page(driver, board, address)
        await asyncio.to_thread(driver.get, address)
        await page.status("Live")
    await page.status("No connection to the command.")
    async with server_of(Board(), SystemClock()).serving(int(address.split(":")[2].split("/")[0])):
        await page.status("The command has ended.")


async def test_a_command_that_is_silent_is_said(page: Page) -> None:
    page.board.post(small())
    await page.status("Live")
    await page.run("(() => { const now = Date.now; Date.now = () => now() + 60000; })()")
    await page.status("The command does not answer.")


@pytest.mark.parametrize("view", VIEWS)
async def test_the_browser_asks_nobody_else_and_objects_to_nothing(page: Page, view: str) -> None:
    page.board.allocation.note(1000.0, ClusterFigures(memory_mib=100, granted_mib=20, cores=100))
    page.board.post(small())
    await page.go(view)
    await page.status("Live")
    lines = await asyncio.to_thread(page.driver.get_log, "performance")
    messages = [json.loads(line["message"])["message"] for line in lines]
    urls = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    own = [url for url in urls if url.startswith(page.address)]
    of_the_browser = ("chrome:", "about:", "data:")  # its first page may still load
    assert len(own) >= 7 and [url for url in urls if not url.startswith((page.address, *of_the_browser))] == []
    said = await asyncio.to_thread(page.driver.get_log, "browser")
    assert [each["message"] for each in said if page.address in each["message"]] == []


@pytest.mark.parametrize("view", ["overview", "map", "node/n"])
async def test_names_are_text(page: Page, view: str) -> None:
    page.board.post(small(HOSTILE))
    await page.go(view)
    await page.until("document.querySelector('main h1') !== null")
    assert await page.run("document.querySelectorAll('main img').length") == 0
    assert "spoiled" not in await page.run("document.title")


async def test_each_view_has_its_title_and_its_place_in_the_navigation(page: Page) -> None:
    page.board.post(small())
    for view, title, place in (
        ("", "Overview", "Overview"), ("overview", "Overview", "Overview"), ("map", "Map", "Map"),
        ("node/n", "Node n", "Map"), ("what-if", "What if", "What if"), ("nonsense/x", "Overview", "Overview"),
        ("pods?ns=other", "Pods", "Pods"), ("pods?ns=team", "Pods", "My pods"),
        ("pod/team/web", "Pod team/web", "Pods"),
    ):  # fmt: skip
        await page.go(view)
        await page.until("document.title === arguments[0]", f"{title} - Lamina")
        assert await page.texts("nav [aria-current]") == [place]


async def test_a_new_view_has_the_focus_at_its_top(page: Page) -> None:
    page.board.post(small())
    await page.status("Live")
    await page.run("document.querySelector('#to-map').click()")
    await page.until("document.activeElement.id === 'main' && document.querySelector('.map') !== null")
    await page.run("document.querySelector('.skip').focus()")
    await page.keys("\ue007")  # Enter
    assert await page.run("document.activeElement.id") == "main"
    assert await page.run("location.hash") == "#/map", "the link that skips is no view"
