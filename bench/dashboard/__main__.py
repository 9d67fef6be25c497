"""`python -m bench.dashboard`: a cluster of 1,000 nodes in Chromium; ends with 1 when a floor breaks."""

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.dashboard.cluster import WAITING, cluster
from bench.measures import Report, add_outputs
from bench.parts import Need, Part
from bench.program import add_parts, chosen, end_with
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument
from lamina.ports.clock import SystemClock
from tests.browser import browser, missing_browser
from tests.operations.dashboard.servers import server_of

NODES = 1000
"""What the floors are for."""
VIEWS = ("overview", "map", "pods")
MANY = 2
"""Times as much of everything, for a page that takes too long."""
PAUSE_S = 0.6
"""Between two updates, so that each comes to a page that rests."""
CONTROLS = 3
PATIENCE_S = 60.0
PARTS = {
    "page": Part(
        about="first paint and updates of the page of 1,000 nodes, in Chromium",
        needs=(Need("a browser", missing_browser),),
        smallest=("--nodes", "11", "--waiting", "3", "--rounds", "1"),
    )
}
_EAGER = """
const sheet = new CSSStyleSheet();
sheet.insertRule(".tile { content-visibility: visible !important; }");
document.adoptedStyleSheets = [sheet];
"""
"""Has the browser lay out and paint all nodes, as if all were in view."""
_WATCH = """
window.paintedAt = {};
const probes = {
  overview: () => document.querySelector("#figures")?.textContent.match(/[0-9.]+ % granted/g).join(" "),
  map: () => `${document.querySelectorAll(".cell").length} ${document.querySelector(".cell")?.ariaLabel}`,
  pods: () => `${document.querySelector("#shown")?.textContent} ${document.querySelector("#pod-rows tr")?.textContent}`,
};
const look = () => {
  const view = document.querySelector("main")?.dataset.view;
  const key = `${view} ${probes[view]?.()}`;
  if (key in window.paintedAt) return;
  window.paintedAt[key] = null;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    window.paintedAt[key] = performance.timeOrigin + performance.now();
  }));
};
new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
"""
"""Notes when a frame was painted with certain figures, or a number of GPUs or pods and the first of them, in ms since
the epoch."""
_PAINTED = """
return Object.entries(window.paintedAt ?? {}).find(([key]) => arguments[0].every((each) => key.includes(each)))?.[1];
"""


class Page:
    """One view of a dashboard in a browser."""

    def __init__(self, driver: Any, board: Board, address: str, view: str) -> None:
        self._driver, self.board, self._address, self._view = driver, board, address, view

    async def first_paint_ms(self, nodes: int, waiting: int) -> float:
        """From the start of the navigation until the view is painted."""
        self.board.post(document := cluster(nodes, waiting=waiting, changed=0))
        await asyncio.to_thread(self._driver.get, "about:blank")
        began = 1000 * time.time()
        await asyncio.to_thread(self._driver.get, f"{self._address}#/{self._view}")
        return await self._painted(document) - began

    async def updates_ms(self, nodes: int, rounds: int, waiting: int) -> list[float]:
        """Each from a document in which one node has changed until that is painted."""
        taken = []
        for generation in range(1, rounds + 1):
            document = cluster(nodes, generation, waiting=waiting, changed=1)
            began = 1000 * time.time()
            self.board.post(document)
            taken.append(await self._painted(document) - began)
            await asyncio.sleep(PAUSE_S)
        return taken

    async def _painted(self, document: ClusterDocument) -> float:
        keys = _keys(document)[self._view]
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            moment = await asyncio.to_thread(self._driver.execute_script, _PAINTED, keys)
            if moment is not None:
                return float(moment)
            await asyncio.sleep(0.05)
        raise TimeoutError(f"not painted within {PATIENCE_S:.0f} s: {keys}")


def _keys(document: ClusterDocument) -> dict[str, tuple[str, ...]]:
    """What each view shows of this document and of none before, as its probe reads it."""
    figures, gpu = document.cluster, document.nodes["node-0"].gpus[0]
    granted = 100 * figures.granted_mib / figures.memory_mib
    return {
        "overview": (f" {_digit(granted)} % granted",),
        "map": (f" {figures.gpus} ", f"node-0 GPU 0: {_digit(gpu.taken_mib / 1024)} GiB of "),
        "pods": (f" {len(document.pods):,} pods ", f"{_digit(gpu.parts[0].memory_mib / 1024)} GiB"),
    }


def _digit(amount: float) -> str:
    return f"{amount:.1f}".removesuffix(".0")


@asynccontextmanager
async def page(view: str, script: str = "") -> AsyncIterator[Page]:
    """A view in a browser in which this script runs first."""
    board = Board()
    with browser() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script + _WATCH})
        async with server_of(board, SystemClock()).serving(0) as address:
            yield Page(driver, board, address, view)


async def measure(report: Report, view: str, nodes: int, waiting: int, rounds: int) -> None:
    async with page(view) as shown:
        paints = [await shown.first_paint_ms(nodes, waiting) for _ in range(rounds)]
        reloads = [await shown.first_paint_ms(nodes, waiting) for _ in range(CONTROLS)]
        updates = await shown.updates_ms(nodes, rounds, waiting)
    report.add(f"first-paint-{view}", "ms", ours=statistics.median(paints))
    report.add(f"update-{view}", "ms", ours=statistics.median(updates))
    report.control(f"update-{view}", "ms", ours=statistics.median(reloads))
    async with page(view, _EAGER) as eager:
        paints = [await eager.first_paint_ms(MANY * nodes, MANY * waiting) for _ in range(CONTROLS)]
    report.control(f"first-paint-{view}", "ms", ours=statistics.median(paints))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description=__doc__)
    add_parts(parser, PARTS)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"nodes of the cluster (default {NODES})")
    parser.add_argument("--waiting", type=int, default=WAITING, help=f"pods that wait (default {WAITING})")
    parser.add_argument("--rounds", type=int, default=7, help="pages and updates of which the median counts")
    add_outputs(parser)
    options = parser.parse_args()
    chosen(parser, PARTS, options)
    report = Report("dashboard")
    for view in VIEWS:
        asyncio.run(measure(report, view, options.nodes, options.waiting, options.rounds))
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
