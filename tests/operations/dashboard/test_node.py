"""The view of a node in a browser: its GPUs with their shares to scale, and their health."""

from typing import Any

import pytest

from lamina.operations.dashboard.document import ClusterDocument, GpuPart, HealthSpan
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, small

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())


def _of(pod: str, **fields: Any) -> GpuPart:
    return GpuPart(pod=f"u{pod}", name=f"team/{pod}", namespace="team", cores=0, **fields)


async def opened(page: Page, document: ClusterDocument, name: str = "n") -> None:
    page.board.post(document)
    await page.go(f"node/{name}")
    await page.until("document.querySelector('.gpu') !== null")


async def test_shares_are_drawn_to_scale(page: Page) -> None:
    await opened(page, small())
    parts = "[...document.querySelectorAll('.share')].map((each) => each.offsetWidth / each.parentElement.clientWidth)"
    memory, compute = await page.run(parts)
    assert memory == pytest.approx(0.25, abs=0.01) and compute == pytest.approx(0.5, abs=0.01)
    states = await page.texts(".gpu .state")
    assert "shared by quota" in states[0] and "Healthy" in states[0]
    assert "Unhealthy: XID 79" in states[1] and "Cordoned" in states[1]


async def test_a_share_leads_to_its_pod(page: Page) -> None:
    await opened(page, small())
    await page.run("document.querySelector('a.share').focus()")
    await page.keys("\ue007")  # Enter
    await page.until("location.hash === '#/pod/team/web'")
    await page.back()
    await page.until("document.querySelector('a.share') !== null")


async def test_the_health_of_a_gpu_is_a_strip_to_scale_and_in_words(page: Page) -> None:
    now = int(await page.run("Date.now() / 1000"))
    spans = (HealthSpan(now - 1000, "healthy"), HealthSpan(now - 500, "unhealthy", "XID 79"))
    cards = (gpu("n", 0, health=(*spans, HealthSpan(now - 250, "healthy"))), gpu("n", 1))
    await opened(page, ClusterDocument(nodes={"n": node("n", *cards)}))
    assert await page.run("document.querySelectorAll('.health').length") == 1
    stops = await page.run("document.querySelector('.health').style.background.match(/[0-9.]+(?=%)/g).map(Number)")
    assert stops == pytest.approx([0, 50, 50, 75, 75, 100], abs=5)
    label = await page.run("document.querySelector('.health').getAttribute('aria-label')")
    assert label.startswith("Health since ") and label.endswith(": unhealthy once, now healthy")
    (line,) = await page.texts(".gpu li")
    assert line.startswith("Unhealthy from ") and line.endswith(": XID 79")


async def test_a_claim_is_a_part_that_leads_to_no_pod(page: Page) -> None:
    claim = GpuPart(pod="", name="claim team/big", memory_mib=8000, cores=30)
    await opened(page, ClusterDocument(nodes={"n": node("n", gpu("n", 0, claim, mode="claims"))}))
    assert await page.texts(".memory .share") == ["claim team/big"]
    assert await page.run("document.querySelectorAll('a.share').length") == 0
    [states] = await page.texts(".gpu .state")
    assert "used by claims" in states


async def test_devices_that_kubelet_allocated_are_on_the_map(page: Page) -> None:
    slices = [_of(each, memory_mib=16000, unlimited=True) for each in "ab"]
    device = _of("c", memory_mib=4864, instances=("1g.5gb",))
    sliced = gpu("n", 0, *slices, mode="timeslice", native="nvidia.com/gpu")
    divided = gpu("n", 1, device, mode="mig", slots=7, taken_slots=1, taken_mib=4864)
    await opened(page, ClusterDocument(nodes={"n": node("n", sliced, divided)}))
    first, second = await page.texts(".gpu .state")
    assert "shared by time slices, allocated by kubelet as nvidia.com/gpu" in first and "divided by MIG" in second
    assert await page.texts(".gpu p.quiet") == [
        "15.6 GiB, 2 pods",
        "4.8 GiB of 15.6 GiB, 1 of 7 MIG devices in use",
    ]
    labels = await page.run("[...document.querySelectorAll('a.share')].map((each) => each.ariaLabel)")
    assert labels == [
        "team/a: memory and compute shared by time slices",
        "team/b: memory and compute shared by time slices",
        "team/c: 4.8 GiB, 1g.5gb",
    ]
    halves = "document.querySelector('a.share').offsetWidth / document.querySelector('.bar').offsetWidth"
    assert await page.run(halves) == pytest.approx(0.5, abs=0.02)


async def test_mig_devices_are_shown_as_requested_existing_and_offered(page: Page) -> None:
    lines = ("configuration all-1g.5gb: success", "28 1g.5gb, not offered, because the MIG strategy is none")
    page.board.post(ClusterDocument(nodes={"n": node("n", mig=lines)}))
    await page.go("node/n")
    await page.until("document.querySelector('.mig li') !== null")
    assert await page.texts(".mig li") == [*lines]


async def test_a_node_that_is_not_there_is_said(page: Page) -> None:
    page.board.post(small())
    await page.go("node/other")
    await page.until("document.querySelector('main .panel') !== null")
    assert (await page.texts("main .panel"))[0].startswith("There is no node of this name with GPUs.")
