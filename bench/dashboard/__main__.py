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
from lamina.ports.clock import SystemClock
from tests.browser import browser, missing_browser
from tests.operations.dashboard.servers import server_of

NODES, FEW = 1000, 10
"""What the floors are for, and a cluster to compare an update with."""
MANY = 2
"""Times as many nodes, for a page that draws all at once: as many take nearly as long as the floor, on a fast machine
less."""
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
window.IntersectionObserver = class {
  constructor(tell) { this.tell = tell; }
  observe(target) { queueMicrotask(() => this.tell([{ target, isIntersecting: true }])); }
  unobserve() {}
};
const sheet = new CSSStyleSheet();
sheet.insertRule(".node, .later { content-visibility: visible !important; }");
document.adoptedStyleSheets = [sheet];
"""
"""Has the page draw and lay out all nodes at once, as if all were in view."""
_WATCH = """
window.paintedAt = {};
const look = () => {
  const nodes = document.querySelectorAll(".node").length;
  const name = document.querySelector("button.share")?.textContent;
  const key = `${nodes} ${name}`;
  if (nodes && !(key in window.paintedAt)) {
    window.paintedAt[key] = null;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      window.paintedAt[key] = performance.timeOrigin + performance.now();
    }));
  }
};
new MutationObserver(look).observe(document, { childList: true, subtree: true });
"""
"""Notes when a frame was painted with a number of nodes and a name of the first share, in ms since the epoch."""


class Page:
    """A dashboard in a browser."""

    def __init__(self, driver: Any, board: Board, address: str) -> None:
        self._driver, self.board, self._address = driver, board, address

    async def first_paint_ms(self, nodes: int, waiting: int) -> float:
        """From the start of the navigation until the nodes in view are painted."""
        self.board.post(cluster(nodes, waiting=waiting, changed=0))
        await asyncio.to_thread(self._driver.get, "about:blank")
        began = 1000 * time.time()
        await asyncio.to_thread(self._driver.get, self._address)
        return await self._painted(f"{nodes} team/pod-0-0-0") - began

    async def updates_ms(self, nodes: int, rounds: int, waiting: int) -> list[float]:
        """Each from a document in which one node has changed until that is painted."""
        taken = []
        for generation in range(1, rounds + 1):
            document = cluster(nodes, generation, waiting=waiting, changed=1)
            name = document.nodes["node-0"].gpus[0].parts[0].name
            began = 1000 * time.time()
            self.board.post(document)
            taken.append(await self._painted(f"{nodes} {name}") - began)
        return taken

    async def _painted(self, key: str) -> float:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            moment = await asyncio.to_thread(
                self._driver.execute_script, "return (window.paintedAt ?? {})[arguments[0]]", key
            )
            if moment is not None:
                return float(moment)
            await asyncio.sleep(0.05)
        raise TimeoutError(f"not painted within {PATIENCE_S:.0f} s: {key}")


@asynccontextmanager
async def page(script: str = "") -> AsyncIterator[Page]:
    """A page in a browser in which this script runs first."""
    board = Board()
    with browser() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script + _WATCH})
        async with server_of(board, SystemClock()).serving(0) as address:
            yield Page(driver, board, address)


async def measure(report: Report, nodes: int, waiting: int, rounds: int) -> None:
    async with page() as shown:
        paints = [await shown.first_paint_ms(nodes, waiting) for _ in range(rounds)]
        reloads = [await shown.first_paint_ms(nodes, waiting) for _ in range(CONTROLS)]
        updates = await shown.updates_ms(nodes, rounds, waiting)
        await shown.first_paint_ms(FEW, waiting=0)
        few = await shown.updates_ms(FEW, rounds, waiting=0)
    report.add("first-paint", "ms", ours=statistics.median(paints))
    report.add("update", "ms", ours=statistics.median(updates))
    report.add("update-growth", "ms", native=statistics.median(few), ours=statistics.median(updates))
    report.control("update", "ms", ours=statistics.median(reloads))
    report.control("update-growth", "ms", native=statistics.median(few), ours=statistics.median(reloads))
    async with page(_EAGER) as eager:
        paints = [await eager.first_paint_ms(MANY * nodes, waiting) for _ in range(CONTROLS)]
    report.control("first-paint", "ms", ours=statistics.median(paints))


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
    asyncio.run(measure(report, options.nodes, options.waiting, options.rounds))
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
