"""The views of pods and GPUs in a browser: what a person chose is in the address, and odd names are text."""

import asyncio
from typing import Any

import msgspec
import pytest

from lamina.operations.dashboard.document import ClusterDocument, ContainerLimits, PodCard
from lamina.report.cluster_use import GpuLoad
from tests import axe_core
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, running, small
from tests.operations.dashboard.uses import use_of

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
NAMES = "[...document.querySelectorAll('#pod-rows th a')].map((each) => each.title)"
SCRIPTS = ("зелёный", "緑の仕事", "أخضر", "ירוק", "🟢" * 20, "<img src=x onerror=alert(1)>")


async def opened(page: Page, address: str) -> None:
    await page.run("location.hash = arguments[0]", address)


async def names(page: Page, *expected: str) -> None:
    await page.until(f"JSON.stringify({NAMES}) === JSON.stringify(arguments[0])", list(expected))


def pods(**cards: PodCard) -> ClusterDocument:
    return ClusterDocument(nodes={"n": node("n", gpu("n", 0))}, pods=dict(cards))


def three() -> ClusterDocument:
    waits = PodCard(
        namespace="other", name="c", state="pending", reason="node n: needs 99999 MiB", ways_out=("Use `less`.",),
        workload="Deployment/vision",
    )  # fmt: skip
    return pods(a=running("a", 1000), b=running("b", 9000), c=waits)


async def test_search_namespace_state_and_order_are_in_the_address(page: Page) -> None:
    page.board.post(three())
    for address, found in (
        ("#/pods", ["c", "a", "b"]),
        ("#/pods?ns=team", ["a", "b"]),
        ("#/pods?state=waiting", ["c"]),
        ("#/pods?q=vision+99999", ["c"]),
        ("#/pods?sort=memory", ["b", "a", "c"]),
        ("#/pods?sort=-memory", ["c", "a", "b"]),
        ("#/pods?sort=nonsense&page=99&columns=nonsense", ["c", "a", "b"]),
    ):
        await opened(page, address)
        await names(page, *found)
    await page.run("[...document.querySelectorAll('thead a')].find((each) => each.textContent === 'Memory').click()")
    await names(page, "b", "a", "c")
    assert "sort=memory" in await page.run("location.hash")
    assert await page.run("document.querySelector('th[aria-sort]').ariaSort") == "descending"


async def test_columns_are_chosen_in_the_address(page: Page) -> None:
    page.board.post(three())
    await opened(page, "#/pods?columns=pod,priority")
    await page.until("document.querySelectorAll('thead th').length === 2")
    labels = "[...document.querySelectorAll('.choice label')]"
    await page.run(f"{labels}.find((each) => each.textContent.includes('Peak')).querySelector('input').click()")
    await page.until("document.querySelectorAll('thead th').length === 3")
    assert "columns=pod%2Cpeak%2Cpriority" in await page.run("location.hash")


async def test_twenty_thousand_pods_come_a_page_at_a_time(page: Page) -> None:
    page.board.post(pods(**{f"u{number}": running(f"p-{number}") for number in range(20_000)}))
    await opened(page, "#/pods?page=2")
    await page.until("document.querySelector('#page-rows')?.innerText === '101 to 200 of 20,000'")
    assert await page.run("document.querySelectorAll('#pod-rows tr').length") == 100
    await page.run("[...document.querySelectorAll('.pages a')].at(-1).click()")
    await page.until("document.querySelector('#page-rows').innerText === '19,901 to 20,000 of 20,000'")


async def test_without_pods_it_says_what_to_do(page: Page) -> None:
    page.board.post(pods())
    await opened(page, "#/pods")
    await page.until("document.querySelector('#none')?.innerText.includes('kubectl apply')")
    await opened(page, "#/pods?ns=team")
    await page.until("document.querySelector('#none')?.innerText.includes('namespace team')")


@pytest.mark.parametrize("name", ["x" * 253, *SCRIPTS])
async def test_names_of_any_length_and_script_are_text_and_lead_to_their_pod(page: Page, name: str) -> None:
    page.board.post(pods(u=msgspec.structs.replace(running(name), workload=name, reason=name)))
    await opened(page, "#/pods")
    await names(page, name)
    assert await page.run("document.querySelectorAll('#pod-rows img').length") == 0
    await page.run("document.querySelector('#pod-rows th a').click()")
    await page.until("document.querySelector('h1').innerText === arguments[0]", name)
    assert await page.run("document.documentElement.scrollWidth <= window.innerWidth")


async def test_a_row_has_what_is_used_and_a_line_of_the_last_minutes(page: Page) -> None:
    page.board.post(small())
    for at, used in ((100.0, 1000), (105.0, 2000)):
        page.board.use(use_of("team", "web", "main", used_mib=used, busy_percent=20.0), "", at)
    await opened(page, "#/pods?state=running")
    await page.until("document.querySelectorAll('#pod-rows .spark polyline').length === 2")
    text = await page.run("document.querySelector('[data-label=\"In use\"]').innerText")
    assert text.startswith("2 GiB, 50 %")


async def test_a_pod_has_its_limits_use_charts_commands_and_claims(page: Page) -> None:
    share = msgspec.structs.replace(running("web").shares[0], spilled_mib=7, compute_meaning="lends", priority=0)
    limits = (ContainerLimits(container="main", limits={"nvidia.com/gpumem": "4000"}),)
    card = msgspec.structs.replace(running("web"), shares=(share,), claims=("claimed",), limits=limits)
    page.board.post(pods(u=msgspec.structs.replace(card, refused_memory="Refused at 1.")), 99.0)
    page.board.use(
        use_of("team", "web", "main", used_mib=2000, peak_mib=3000, busy_percent=50.0, limit_mib=5000), "", 100.0
    )
    await opened(page, "#/pod/team/web")
    await page.until("document.querySelectorAll('.timeline').length === 2 && document.querySelector('#commands')")
    text = await page.run("document.querySelector('main').innerText")
    for fact in (
        "4,000 MiB", "Limit now", "5,000 MiB", "2 GiB, 40 %", "2.9 GiB", "20 % of it lent",
        "its requests come first", "claimed", "Refused at 1.", "nvidia.com/gpumem 4000", "lamina why -n team web",
        "What the dashboard has seen",
    ):  # fmt: skip
        assert fact in text, fact


@pytest.mark.parametrize(("limit_mib", "unit"), [(900, "MiB"), (5000, "GiB"), (81920, "GiB"), (3 << 20, "TiB")])
async def test_an_axis_of_memory_has_round_numbers_of_one_unit(page: Page, limit_mib: int, unit: str) -> None:
    page.board.post(pods(u=running("web")), 99.0)
    use = use_of("team", "web", "main", used_mib=100, busy_percent=1.0, limit_mib=limit_mib, peak_mib=200)
    page.board.use(use, "", 100.0)
    await page.until("document.querySelector('nav') !== null")
    await page.run(
        "((drawing, write) => { window.written = [];"
        " drawing.fillText = function (text, ...rest) { window.written.push(text); write.call(this, text, ...rest); };"
        "})(CanvasRenderingContext2D.prototype, CanvasRenderingContext2D.prototype.fillText)"
    )
    await opened(page, "#/pod/team/web")
    await page.until("window.written.some((text) => text.endsWith('iB'))")
    ticks = {text for text in await page.run("window.written") if text.endswith("iB")}
    numbers = sorted({float(text.split()[0].replace(",", "")) for text in ticks})
    assert {text.split()[1] for text in ticks} == {unit} and len(numbers) >= 3, ticks
    step = numbers[1] - numbers[0]
    assert f"{step:e}"[0] in "125" and all(abs(each / step - round(each / step)) < 1e-6 for each in numbers), ticks


async def test_a_pod_that_is_gone_says_so(page: Page) -> None:
    page.board.post(pods())
    await opened(page, "#/pod/team/web")
    await page.until("document.querySelector('main .panel')?.innerText.includes('gone')")


async def test_a_gpu_has_its_shares_over_time(page: Page) -> None:
    page.board.post(small(), 1000.0)
    use = use_of("team", "web", "main", used_mib=100)
    use.gpus["GPU-n-0"] = GpuLoad(used_mib=500, busy_percent=8.0, node="n")
    page.board.use(use, "", 2000.0)
    await opened(page, "#/gpu/GPU-n-0")
    await page.until(
        "document.querySelectorAll('.holders li').length === 1 && document.querySelectorAll('.timeline').length === 2"
    )
    text = await page.run("document.querySelector('main').innerText")
    for fact in ("500 MiB in use by all processes", "team/web", "to now", "lamina cordon gpu n 0"):
        assert fact in text, fact
    await opened(page, "#/gpu/nothing")
    await page.until("document.querySelector('main .panel')?.innerText.includes('No node has this GPU')")


@pytest.mark.parametrize("address", ["#/pods", "#/pod/team/web", "#/gpu/GPU-n-0"])
async def test_the_views_are_accessible_and_fit_a_phone(page: Page, address: str) -> None:
    page.board.post(small(), 1000.0)
    page.board.use(use_of("team", "web", "main", used_mib=100, busy_percent=5.0), "", 2000.0)
    await opened(page, address)
    await page.until("document.querySelector('#commands, #pod-rows .spark')")
    assert await axe(page) == []
    size = {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    await asyncio.to_thread(page.driver.execute_cdp_cmd, "Emulation.setDeviceMetricsOverride", size)
    try:
        await page.until("window.innerWidth === 320")
        assert await page.run("document.documentElement.scrollWidth") == 320
        assert await axe(page) == []
    finally:
        await asyncio.to_thread(page.driver.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})


async def axe(page: Page) -> list[Any]:
    script = axe_core.script()
    if script is None:
        return []
    await asyncio.to_thread(page.driver.execute_script, script)
    found: list[Any] = await asyncio.to_thread(page.driver.execute_async_script, AXE)
    return found


AXE = """
const done = arguments[arguments.length - 1];
const only = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
axe.run(document, only).then(({ violations }) => done(
  violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])])));
"""
