"""The page of a large cluster: 1,000 nodes with 8 GPUs each, and 10,000 pods that wait."""

import msgspec
import pytest

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart, PodCard
from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page, gpu, node, running

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
NODES, GPUS, WAITING, REASONS = 1000, 8, 10_000, 2
FILLED = f"document.querySelectorAll('button.share').length === {NODES * GPUS}"
WATCH = """(() => {
  const drawn = new Set(), places = "section.node, #node-list, article, #waiting, tr, #pod-rows";
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const place = target.closest(places);
      if (place) drawn.add(place.getAttribute("aria-label") ?? place.id);
    }
  }).observe(document.querySelector("#cluster-view"), { childList: true, subtree: true });
  window.drawn = () => [...drawn].sort();
})()"""
"""Notes what is drawn again: nodes by their labels, lists of which the members change by their ids."""
FILTER = """(() => {
  const field = document.querySelector("#words");
  field.value = arguments[0];
  field.dispatchEvent(new Event("input"));
})()"""
NAMES = "[...document.querySelectorAll('.node h3')].map((each) => each.textContent)"


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


def renamed(document: ClusterDocument, name: str) -> ClusterDocument:
    """The pod on the first GPU of this node has another name."""
    before = document.nodes[name]
    part = msgspec.structs.replace(before.gpus[0].parts[0], name="team/renamed")
    first = msgspec.structs.replace(before.gpus[0], parts=(part,))
    nodes = {**document.nodes, name: msgspec.structs.replace(before, gpus=(first, *before.gpus[1:]))}
    return msgspec.structs.replace(document, nodes=nodes, pods={**document.pods, part.pod: running("renamed")})


async def test_every_node_can_be_reached(page: Page) -> None:
    page.board.post(thousand())
    await page.until("document.querySelectorAll('.node').length === 1000")
    assert await page.run(NAMES) == [f"node-{number}" for number in range(NODES)]
    assert await page.texts("#shown") == ["1,000 nodes, 18,000 pods"]
    assert await page.texts("#more-pods") == ["17,500 more pods not shown; use the filter to find them."]
    assert [text.split(" ")[0] for text in await page.texts("#waiting h3")] == ["5,000"] * REASONS
    await page.run("document.querySelector('[aria-label=\"Node node-777\"]').scrollIntoView()")
    await page.until("document.querySelector('[aria-label=\"Node node-777\"] button.share') !== null")
    await page.until(FILLED)
    await page.run(FILTER, "p-999-7")
    assert await page.run(NAMES) == ["node-999"] and await page.texts("#shown") == ["1 node, 1 pod"]
    await page.run(FILTER, "")
    assert await page.run("document.querySelectorAll('.node').length") == NODES and await page.run(FILLED)


async def test_an_update_draws_its_node_alone(page: Page) -> None:
    before = thousand()
    page.board.post(before)
    await page.until(FILLED)
    for name in ("node-0", "node-500"):
        await page.run(WATCH)
        page.board.post(renamed(before, name))
        await page.until("[...document.querySelectorAll('button.share')].some((e) => e.textContent === 'team/renamed')")
        assert f"Node {name}" in (drawn := await page.run("window.drawn()"))
        assert [each for each in drawn if each.startswith("Node ")] == [f"Node {name}"]
        assert "node-list" not in drawn and "waiting" not in drawn
        page.board.post(before)
        await page.until(
            "![...document.querySelectorAll('button.share')].some((e) => e.textContent === 'team/renamed')"
        )


async def test_nodes_and_pods_that_go_are_gone(page: Page) -> None:
    before = thousand()
    page.board.post(before)
    await page.until("document.querySelectorAll('.node').length === 1000")
    await page.run("document.querySelector('#words').focus()")
    await page.keys("node-777")
    await page.until("document.querySelectorAll('.node').length === 1")
    page.board.post(ClusterDocument(nodes={"node-777": node("node-777", gpu("node-777", 0))}))
    await page.until("document.querySelectorAll('button.share').length === 0")
    await page.run(FILTER, "")
    assert await page.run(NAMES) == ["node-777"] and await page.texts("#waiting") == ["None."]
