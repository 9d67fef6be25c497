"""The page in a browser: what it shows, that it can be used by keyboard, and what it says when it is not current."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, HealthSpan, PodCard
from lamina.ports.clock import SystemClock
from lamina.report.cluster_use import ClusterUse
from tests import axe_core
from tests.browser import missing_browser, use_scheme
from tests.operations.dashboard.pages import Page, gpu, node, small
from tests.operations.dashboard.servers import server_of
from tests.operations.dashboard.uses import use_of

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
HOSTILE = "<img src=x onerror=\"document.title='spoiled'\">"


async def test_it_is_live_only_with_a_cluster_that_was_read(page: Page) -> None:
    await page.status("The command cannot follow the cluster: the cluster has not been read yet")
    page.board.post(small())
    await page.status("Live")
    assert await page.run("document.body.dataset.state") == "live"


async def test_shares_are_drawn_to_scale(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    parts = "[...document.querySelectorAll('.share')].map((each) => each.offsetWidth / each.parentElement.clientWidth)"
    memory, compute = await page.run(parts)
    assert memory == pytest.approx(0.25, abs=0.01) and compute == pytest.approx(0.5, abs=0.01)
    states = await page.texts(".gpu .state")
    assert "shared by quota" in states[0] and "Healthy" in states[0]
    assert "Unhealthy: XID 79" in states[1] and "Cordoned" in states[1]


async def test_the_health_of_a_gpu_is_a_strip_to_scale_and_in_words(page: Page) -> None:
    now = int(await page.run("Date.now() / 1000"))
    spans = (HealthSpan(now - 1000, "healthy"), HealthSpan(now - 500, "unhealthy", "XID 79"))
    cards = (gpu("n", 0, health=(*spans, HealthSpan(now - 250, "healthy"))), gpu("n", 1))
    page.board.post(ClusterDocument(nodes={"n": node("n", *cards)}))
    await page.until("document.querySelectorAll('.health').length === 1")
    stops = await page.run("document.querySelector('.health').style.background.match(/[0-9.]+(?=%)/g).map(Number)")
    assert stops == pytest.approx([0, 50, 50, 75, 75, 100], abs=5)
    label = await page.run("document.querySelector('.health').getAttribute('aria-label')")
    assert label.startswith("Health since ") and label.endswith(": unhealthy once, now healthy")
    (line,) = await page.texts(".gpu li")
    assert line.startswith("Unhealthy from ") and line.endswith(": XID 79")


async def test_a_claim_is_a_part_that_leads_to_no_pod(page: Page) -> None:
    claim = GpuPart(pod="", name="claim team/big", memory_mib=8000, cores=30)
    page.board.post(ClusterDocument(nodes={"n": node("n", gpu("n", 0, claim, mode="claims"))}))
    await page.until("document.querySelector('.memory .others') !== null")
    assert await page.texts(".memory .share") == ["claim team/big"]
    assert await page.run("document.querySelectorAll('button.share').length") == 0
    [states] = await page.texts(".gpu .state")
    assert "used by claims" in states


async def test_devices_that_kubelet_allocated_are_on_the_map(page: Page) -> None:
    slices = [GpuPart(pod=f"u{each}", name=f"team/{each}", memory_mib=16000, cores=0, unlimited=True) for each in "ab"]
    device = GpuPart(pod="uc", name="team/c", memory_mib=4864, cores=0, instances=("1g.5gb",))
    sliced = gpu("n", 0, *slices, mode="timeslice", native="nvidia.com/gpu")
    divided = gpu("n", 1, device, mode="mig", slots=7, taken_slots=1, taken_mib=4864)
    page.board.post(ClusterDocument(nodes={"n": node("n", sliced, divided)}))
    await page.until("document.querySelectorAll('button.share').length === 3")
    first, second = await page.texts(".gpu .state")
    assert "shared by time slices, allocated by kubelet as nvidia.com/gpu" in first and "divided by MIG" in second
    assert await page.texts(".gpu p.quiet") == [
        "16,000 MiB, 2 pods",
        "4,864 MiB of 16,000 MiB, 1 of 7 MIG devices in use",
    ]
    labels = await page.run("[...document.querySelectorAll('button.share')].map((each) => each.ariaLabel)")
    assert labels == [
        "team/a: memory and compute shared by time slices",
        "team/b: memory and compute shared by time slices",
        "team/c: 4,864 MiB, 1g.5gb",
    ]
    halves = "document.querySelector('button.share').offsetWidth / document.querySelector('.bar').offsetWidth"
    assert await page.run(halves) == pytest.approx(0.5, abs=0.02)


async def test_pods_that_wait_have_their_reason_and_ways_out(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('#waiting article') !== null")
    (text,) = await page.texts("#waiting article")
    assert "needs 99999 MiB" in text and "Use less." in text and "team/big" in text


async def test_workloads_whose_pods_are_refused_are_not_called_pods(page: Page) -> None:
    refused = {name: PodCard(namespace="team", name=name, state="refused", reason="No.") for name in ("job/a", "b")}
    page.board.post(ClusterDocument(pods=refused))
    await page.until("document.querySelectorAll('#waiting article').length === 2")
    assert await page.texts("#waiting h3") == ["1 pod refused", "1 workload whose pods are refused"]


async def test_a_share_leads_to_its_pod_by_keyboard_and_back(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    await page.run("document.querySelector('button.share').focus()")
    await page.keys("\ue007")  # Enter
    await page.until("document.querySelector('#details').open")
    (text,) = await page.texts("#details")
    assert "team/web" in text and "4,000 MiB" in text and "30 %" in text and "not known" in text
    page.board.use(use_of("team", "web", "main", used_mib=1000, peak_mib=3500, busy_percent=12), "", 5.0)
    await page.until("document.querySelector('#details').innerText.includes('1,000 MiB')")
    (text,) = await page.texts("#details")
    assert "3,500 MiB" in text and "12 %" in text
    line = "document.querySelector('.used').offsetWidth / document.querySelector('button.share').offsetWidth"
    assert await page.run(line) == pytest.approx(0.25, abs=0.02)
    page.board.post(ClusterDocument(nodes=small().nodes))
    await page.until("document.querySelector('#details').innerText.includes('This pod is gone.')")
    await page.keys("\ue00c")  # Escape
    await page.until("!document.querySelector('#details').open")
    await page.until("document.activeElement.className === 'share'")


async def test_the_focus_stays_while_the_cluster_changes(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    await page.run("document.querySelector('button.share').focus()")
    page.board.post(small("renamed"))
    await page.until("document.querySelector('button.share').innerText === 'team/renamed'")
    assert await page.run("document.activeElement.innerText") == "team/renamed"


async def test_names_are_text(page: Page) -> None:
    page.board.post(small(HOSTILE))
    await page.until("document.querySelector('button.share') !== null")
    assert await page.texts("button.share") == [f"team/{HOSTILE}"]
    assert await page.run("document.querySelectorAll('img').length") == 0
    assert await page.run("document.title") == "Lamina"


async def test_a_lost_api_server_is_said(page: Page) -> None:
    page.board.post(small())
    await page.status("Live")
    page.board.lose("the Kubernetes server does not answer")
    await page.status("The command cannot follow the cluster: the Kubernetes server does not answer.")
    assert await page.run("document.body.dataset.state") == "lost"
    page.board.post(small())
    await page.status("Live")


async def test_use_that_cannot_be_read_is_said(page: Page) -> None:
    page.board.post(small())
    page.board.use(ClusterUse(), "http://agent cannot be read: no answer", 5.0)
    await page.until("document.querySelector('#warnings').innerText.includes('http://agent cannot be read')")


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


async def test_the_browser_asks_nobody_else_and_objects_to_nothing(page: Page) -> None:
    page.board.post(small())
    await page.status("Live")
    lines = await asyncio.to_thread(page.driver.get_log, "performance")
    messages = [json.loads(line["message"])["message"] for line in lines]
    urls = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    assert len(urls) >= 7 and [url for url in urls if not url.startswith(page.address)] == []
    said = await asyncio.to_thread(page.driver.get_log, "browser")
    assert [each["message"] for each in said if page.address in each["message"]] == []


async def test_headings_buttons_and_regions_have_names(page: Page) -> None:
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    assert await page.run("document.querySelector('#status').getAttribute('role')") == "status"
    assert await page.run("document.documentElement.lang") == "en"
    levels = await page.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].filter((each) => each.offsetParent).map((e) => +e.tagName[1])"
    )
    assert levels[0] == 1 and all(after - before <= 1 for before, after in itertools.pairwise(levels))
    tree = await asyncio.to_thread(page.driver.execute_cdp_cmd, "Accessibility.getFullAXTree", {})
    named = ("button", "heading", "region", "searchbox", "group")
    nameless = [
        each["role"]["value"]
        for each in tree["nodes"]
        if not each["ignored"] and each["role"]["value"] in named and not each.get("name", {}).get("value")
    ]
    assert nameless == []


CONTRAST: Callable[[str], str] = """(() => {{
  const linear = (part) => (part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = (text) => {{
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  }};
  const ground = (each) => {{
    const color = getComputedStyle(each).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" && each.parentElement ? ground(each.parentElement) : color;
  }};
  return [...document.querySelectorAll("{}")].filter((each) => each.innerText && each.offsetParent).map((each) => {{
    const [one, other] = [light(getComputedStyle(each).color), light(ground(each))].sort((a, b) => b - a);
    return [each.innerText, (one + 0.05) / (other + 0.05)];
  }}).filter(([, ratio]) => ratio < 4.5);
}})()""".format


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_texts_have_enough_contrast(page: Page, scheme: str) -> None:
    """4.5:1, as WCAG 2 AA asks, for every hue that a share can have."""
    await asyncio.to_thread(use_scheme, page.driver, scheme)
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    assert await page.run(CONTRAST("h1, h2, h3, h4, p, dt, dd, td, th, li, button, span, label, output")) == []
    for hue in range(0, 360, 15):
        await page.run("document.querySelector('button.share').style.setProperty('--hue', arguments[0])", hue)
        assert await page.run(CONTRAST("button.share")) == [], hue


async def test_granted_and_stranded_gpu_over_time(page: Page) -> None:
    page.board.allocation.note(1000.0, ClusterFigures(memory_mib=100, granted_mib=20, cores=100, stranded_mib=10))
    page.board.allocation.lose(2000.0)
    page.board.allocation.note(3000.0, ClusterFigures(memory_mib=100, granted_mib=60, cores=100, stranded_mib=5))
    page.board.post(small())
    await page.until("document.querySelectorAll('#allocation polyline').length === 6")
    memory, _, stranded = (text.strip() for text in await page.texts("#allocation li"))
    assert memory == "Memory granted: now 60.0 %, least 20.0 %, most 60.0 %"
    assert stranded == "Memory stranded: now 5.0 %, least 5.0 %, most 10.0 %"
    page.board.allocation.note(4000.0, ClusterFigures(memory_mib=100, granted_mib=90, cores=100))
    page.board.post(small("other"))
    await page.until("document.querySelector('#allocation li').innerText.includes('now 90.0 %')")


async def test_mig_devices_are_shown_as_requested_existing_and_offered(page: Page) -> None:
    lines = ("configuration all-1g.5gb: success", "28 1g.5gb, not offered, because the MIG strategy is none")
    page.board.post(ClusterDocument(nodes={"n": node("n", mig=lines)}))
    await page.until("document.querySelector('.node li')?.innerText")
    assert await page.texts(".node li") == [*lines]


@pytest.mark.skipif(axe_core.script() is None, reason="no axe-core: install npm to fetch one")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["cluster", "pods/team", "details"])
async def test_axe_finds_nothing(page: Page, scheme: str, view: str) -> None:
    """The rules of WCAG 2.1 AA that a program can check."""
    await asyncio.to_thread(use_scheme, page.driver, scheme)
    page.board.allocation.note(1000.0, ClusterFigures(memory_mib=100, granted_mib=20, cores=100, stranded_mib=10))
    page.board.post(small())
    await page.until("document.querySelector('button.share') !== null")
    if view == "details":
        await page.run("document.querySelector('button.share').click()")
        await page.until("document.querySelector('#details').open")
    else:
        await page.run(f"void (location.hash = '#{view}')")
    await asyncio.to_thread(page.driver.execute_script, axe_core.script())
    found = await asyncio.to_thread(page.driver.execute_async_script, AXE)
    assert found == []


AXE = """
const done = arguments[arguments.length - 1];
const only = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
axe.run(document, only).then(({ violations }) => done(
  violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])])));
"""
