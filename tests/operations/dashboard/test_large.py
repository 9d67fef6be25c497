"""The page of a large cluster: 1,000 nodes with 8 GPUs each, and 10,000 pods that wait."""

import msgspec
import pytest

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, running

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
NODES, GPUS, WAITING, REASONS = 1000, 8, 10_000, 2
CELLS = "document.querySelectorAll('.cell').length"
WATCH = """(() => {
  const drawn = new Set();
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      drawn.add(target.closest(".tile")?.querySelector(".name").ariaLabel ?? target.className);
    }
  }).observe(document.querySelector(".map"), { childList: true, subtree: true, attributes: true });
  window.drawn = () => [...drawn].sort();
})()"""
"""Notes what is drawn again: nodes by their labels, and what surrounds them by its class."""
NAMES = "[...document.querySelectorAll('.tile .name')].map((each) => each.title)"


def thousand() -> ClusterDocument:
    nodes, pods = {}, {}
    for number in range(NODES):
        name, uids = f"node-{number}", [f"{number}-{index}" for index in range(GPUS)]
        parts = [GpuPart(pod=uid, name=f"team/p-{uid}", memory_mib=4000, cores=25) for uid in uids]
        nodes[name] = node(name, *(gpu(name, index, part, mode="quota") for index, part in enumerate(parts)))
        pods |= {uid: running(f"p-{uid}") for uid in uids}
    for number in range(WAITING):
        reason = f"reason {number % REASONS}"
        pods[f"w{number}"] = PodCard(namespace="team", name=f"w-{number}", state="pending", reason=reason)
    return ClusterDocument(cluster=ClusterFigures(nodes=NODES, gpus=GPUS * NODES), nodes=nodes, pods=pods)


def filled(document: ClusterDocument, name: str) -> ClusterDocument:
    """More of the first GPU of this node is granted."""
    before = document.nodes[name]
    first = msgspec.structs.replace(before.gpus[0], taken_mib=12000)
    nodes = {**document.nodes, name: msgspec.structs.replace(before, gpus=(first, *before.gpus[1:]))}
    return msgspec.structs.replace(document, nodes=nodes)


async def opened(page: Page, document: ClusterDocument) -> None:
    page.board.post(document)
    await page.go("map")
    await page.until(f"{CELLS} === {NODES * GPUS}")


async def test_every_gpu_can_be_reached(page: Page) -> None:
    await opened(page, thousand())
    assert await page.run(NAMES) == [f"node-{number}" for number in range(NODES)]
    assert await page.texts("#shown") == ["1,000 nodes, 8,000 GPUs"]
    await page.run("document.querySelector('#words').focus()")
    await page.keys("p-999-7")
    await page.until(f"{CELLS} === 1")
    assert await page.run(NAMES) == ["node-999"] and await page.texts("#shown") == ["1 node, 1 GPU"]
    await page.back()
    await page.until(f"{CELLS} === {NODES * GPUS}")


async def test_reasons_are_counted_over_all_pods(page: Page) -> None:
    page.board.post(thousand())
    await page.until("document.querySelectorAll('#waiting h3').length > 0")
    assert [text.split(" ")[0] for text in await page.texts("#waiting h3")] == ["5,000"] * REASONS
    assert await page.run("document.querySelectorAll('#waiting a').length") < 100


async def test_an_update_draws_its_node_alone(page: Page) -> None:
    before = thousand()
    await opened(page, before)
    for name in ("node-0", "node-500"):
        await page.run(WATCH)
        page.board.post(filled(before, name))
        await page.until(
            "[...document.querySelectorAll('.cell')].some((each) => each.ariaLabel.includes('11.7 GiB of'))"
        )
        assert await page.run("window.drawn()") == [f"Node {name}"]
        page.board.post(before)
        await page.until(
            "![...document.querySelectorAll('.cell')].some((each) => each.ariaLabel.includes('11.7 GiB of'))"
        )


async def test_nodes_that_go_are_gone(page: Page) -> None:
    await opened(page, thousand())
    page.board.post(ClusterDocument(nodes={"node-777": node("node-777", gpu("node-777", 0))}))
    await page.until(f"{CELLS} === 1")
    assert await page.run(NAMES) == ["node-777"] and await page.texts("#shown") == ["1 node, 1 GPU"]
