"""The view "My pods" in a browser: the pods of one namespace, what they use, and why they wait."""

import msgspec
import pytest

from lamina.operations.dashboard.document import ClusterDocument, ContainerLimits, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, running, small
from tests.operations.dashboard.uses import use_of

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
HOLDER = ("team", "web", "main")


def two_namespaces() -> ClusterDocument:
    """The small cluster, with a pod of another namespace, and a container that was refused memory."""
    document = small()
    limits = (ContainerLimits(container="main", limits={"nvidia.com/gpumem": "4000"}),)
    web = msgspec.structs.replace(
        document.pods["u1"], limits=limits, refused_memory="Refused at noon: its limit is 4000 MiB."
    )
    other = PodCard(namespace="other", name="theirs", state="pending", reason="node n: full", ways_out=("Wait.",))
    return msgspec.structs.replace(document, pods=document.pods | {"u1": web, "u3": other})


async def opened(page: Page) -> list[str]:
    """The cards of the view, once there are some."""
    page.board.post(two_namespaces())
    await page.until("document.querySelector('button.share') !== null")
    await page.run("document.querySelector('#to-pods').click()")
    await page.until("document.querySelector('#my-pods article') !== null")
    return await page.texts("#my-pods article")


async def test_it_shows_the_own_namespace_and_what_waits_first(page: Page) -> None:
    waits, web = await opened(page)
    assert await page.run("document.querySelector('#namespace').value") == "team"
    assert waits.startswith("big is pending") and "needs 99999 MiB" in waits and "Use less." in waits
    assert web.startswith("web runs on n") and "GPU 0, Tesla T4, quota" in web
    assert "4,000 MiB" in web and "30 %" in web and "nvidia.com/gpumem 4000" in web
    assert "Out of GPU memory. Refused at noon: its limit is 4000 MiB." in web
    assert "Memory: not known" in web and await page.run("document.querySelectorAll('#my-pods svg').length") == 0


async def test_another_namespace_is_in_the_address(page: Page) -> None:
    await opened(page)
    choose = "(() => { const made = document.querySelector('#namespace'); made.value = 'other';"
    await page.run(f"{choose} made.dispatchEvent(new Event('change')); }})()")
    await page.until("document.querySelector('#my-pods').innerText.startsWith('theirs is pending')")
    assert await page.run("location.hash") == "#pods/other"
    await page.run("(() => { location.hash = '#pods/empty'; })()")
    await page.until("document.querySelector('#my-pods').innerText.startsWith('No pod in the namespace empty')")
    await page.run("document.querySelector('#to-cluster').click()")
    await page.until("document.querySelector('#pods-view').hidden && !document.querySelector('#cluster-view').hidden")


async def test_a_share_that_borrows_has_its_guarantee_its_limit_and_what_it_borrows(page: Page) -> None:
    page.board.post(ClusterDocument(pods={"u1": running("web", 4000, most_mib=9000)}))
    page.board.use(use_of(*HOLDER, used_mib=6000, borrowed_mib=2000, limit_mib=9000), "", 100.0)
    await page.until("document.querySelector('#pod-rows').innerText.includes('4,000 MiB to 9,000 MiB')")
    await page.run("document.querySelector('#pod-rows button').click()")
    await page.until("document.querySelector('#details').innerText.includes('2,000 MiB')")
    await page.keys("\ue00c")  # Escape
    await page.run("(() => { location.hash = '#pods/team'; })()")
    await page.until("document.querySelectorAll('#my-pods article').length === 1")
    [text] = await page.texts("#my-pods article")
    facts = " ".join(text.split())
    assert "Memory limit 9,000 MiB Guaranteed memory 4,000 MiB Borrowed 2,000 MiB In use 6,000 MiB, 66.7 %" in facts
    assert "Limit now" not in facts


async def test_charts_are_to_scale_and_say_their_figures(page: Page) -> None:
    await opened(page)
    first = use_of(*HOLDER, used_mib=1000, peak_mib=3500, busy_percent=10)
    second = use_of(*HOLDER, used_mib=3000, peak_mib=3500, busy_percent=45, spilled_mib=200, limit_mib=4500)
    for moment, use in ((100.0, first), (200.0, second)):
        page.board.use(use, "", moment)
    await page.until("document.querySelectorAll('#my-pods svg').length === 2")
    [text] = [each for each in await page.texts("#my-pods article") if each.startswith("web")]
    assert "Memory, last 5 minutes: now 3,000 MiB, most 3,000 MiB" in text
    assert "GPU time, last 5 minutes: now 45 %, most 45 %" in text
    assert "3,000 MiB, 66.7 %" in text and "Spilled" in text and "200 MiB" in text
    assert "Limit now" in text and "4,500 MiB" in text
    drawn = "[...document.querySelectorAll('#my-pods svg')[0].querySelectorAll('.line')].map((each) => "
    lines = await page.run(
        drawn + "each.getAttribute('points').split(' ').map((point) => point.split(',').map(Number)))"
    )
    (earlier, *_), (later, *_) = (line[::-1] for line in lines)
    assert len(lines) == 2, "100 s without a reading are a gap"
    assert (later[0], earlier[0]) == (240.0, 160.0)
    height = 44.0
    assert (height - 1 - later[1]) / (height - 1 - earlier[1]) == pytest.approx(3.0, abs=0.1)


async def test_readings_add_up_and_end_with_the_pod(page: Page) -> None:
    await opened(page)
    for step in range(5):
        page.board.use(use_of(*HOLDER, used_mib=1000 + step, peak_mib=3500, busy_percent=10), "", 100.0 + 5 * step)
    points = "document.querySelector('#my-pods .line')?.getAttribute('points').split(' ').length"
    await page.until(f"{points} === 5")
    page.board.post(ClusterDocument(pods={"u9": running("web")}))
    await page.until("document.querySelectorAll('#my-pods article').length === 1")
    page.board.use(use_of(*HOLDER, used_mib=2000, peak_mib=3500, busy_percent=10), "", 125.0)
    await page.until("document.querySelector('#my-pods').innerText.includes('most 2,000 MiB')")


async def test_a_pod_leads_to_its_details(page: Page) -> None:
    await opened(page)
    await page.run("document.querySelector('#my-pods article button').focus()")
    await page.keys("\ue007")  # Enter
    await page.until("document.querySelector('#details').open")
    (text,) = await page.texts("#details")
    assert "team/big" in text
    await page.keys("\ue00c")  # Escape
    await page.until("document.activeElement.innerText === 'big'")
