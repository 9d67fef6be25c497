"""`python -m bench.dashboard`: a cluster of 1,000 nodes in Chromium; ends with 1 when a floor breaks.

Times pass until a frame is painted. On a busy machine they say little, so the CPU time is measured too, of the server
and of the page's main thread.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from unittest import mock

from bench.dashboard.cluster import WAITING, cluster
from bench.measures import Report, add_outputs
from bench.parts import Need, Part
from bench.program import add_parts, chosen, end_with
from lamina.operations.dashboard import answers
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument
from lamina.ports.clock import SystemClock
from tests.browser import browser, missing_browser
from tests.operations.dashboard.servers import server_of

NODES = 1000
"""What the floors are for."""
VIEWS = ("overview", "map", "pods")
MANY = 4
"""Times as much of everything, for a page that takes too long."""
PAUSE_S = 0.6
"""Between two updates, so that each comes to a page that rests."""
PATIENCE_S = 60.0
PARTS = {
    "page": Part(
        about="first paint and updates of the page of 1,000 nodes, in Chromium",
        needs=(Need("a browser", missing_browser),),
        smallest=("--nodes", "11", "--waiting", "3", "--rounds", "1"),
    )
}
_WATCH = """
window.paintedAt = {};
const text = (place) => document.querySelector(place)?.textContent;
const probes = {
  overview: () => text("#figures")?.match(/[0-9.]+ % granted/g).join(" "),
  map: () => `${text("#shown")} ${document.querySelector(".cell")?.ariaLabel} ${inView()}`,
  pods: () => `${text("#shown")} ${text("#pod-rows tr")}`,
};
const inView = () => {
  const all = document.querySelectorAll(".tile").length === parseInt(text("#shown")?.replaceAll(",", ""));
  const bottom = document.querySelector(".map")?.getBoundingClientRect().bottom;
  return all || bottom >= innerHeight ? "as a whole" : "in part";
};
let waits = false;
const look = () => {
  if (waits) return;
  waits = true;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    waits = false;
    const view = document.querySelector("main")?.dataset.view;
    window.paintedAt[`${view} ${probes[view]?.()}`] ??= performance.timeOrigin + performance.now();
  }));
};
new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
"""
"""Notes when a frame was painted with certain figures, or a number of GPUs or pods and the first of them, in ms since
the epoch. All GPUs in the window must be there, not those that can be scrolled to."""
_PAINTED = """
return Object.entries(window.paintedAt ?? {}).find(([key]) => arguments[0].every((each) => key.includes(each)))?.[1];
"""


class Taken(NamedTuple):
    """How long something took, and of that, the CPU time of the server and of the page's main thread."""

    wall: float
    cpu: float


def _median(found: Sequence[Taken]) -> Taken:
    return Taken(*(statistics.median(each) for each in zip(*found, strict=True)))


class Page:
    """One view of a dashboard in a browser."""

    def __init__(self, driver: Any, board: Board, address: str, view: str) -> None:
        self._driver, self.board, self._address, self._view = driver, board, address, view

    async def first_paint_ms(self, nodes: int, waiting: int) -> Taken:
        """From the start of the navigation until the view is painted."""
        self.board.post(document := cluster(nodes, waiting=waiting, changed=0))
        await asyncio.to_thread(self._driver.get, "about:blank")
        used, began = await self._cpu_ms(), 1000 * time.time()
        await asyncio.to_thread(self._driver.get, f"{self._address}#/{self._view}")
        return await self._taken(document, began, used)

    async def updates_ms(self, nodes: int, rounds: int, waiting: int) -> list[Taken]:
        """Each from a document in which one node has changed until that is painted."""
        taken = []
        await asyncio.sleep(PAUSE_S)
        for generation in range(1, rounds + 1):
            document = cluster(nodes, generation, waiting=waiting, changed=1)
            used, began = await self._cpu_ms(), 1000 * time.time()
            self.board.post(document)
            taken.append(await self._taken(document, began, used))
            await asyncio.sleep(PAUSE_S)
        return taken

    async def _taken(self, document: ClusterDocument, began: float, used: float) -> Taken:
        wall = await self._painted(document) - began
        return Taken(wall, await self._cpu_ms() - used)

    async def _cpu_ms(self) -> float:
        """Of this thread, which serves, and of the page's main thread."""
        found = await asyncio.to_thread(self._driver.execute_cdp_cmd, "Performance.getMetrics", {})
        tasks = next(each["value"] for each in found["metrics"] if each["name"] == "TaskDuration")
        return 1000 * (time.thread_time() + float(tasks))

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
        "map": (f" {figures.gpus:,} GPUs ", "as a whole", f"node-0 GPU 0: {_digit(gpu.taken_mib / 1024)} GiB of "),
        "pods": (f" {len(document.pods):,} pods ", f"{_digit(gpu.parts[0].memory_mib / 1024)} GiB"),
    }


def _digit(amount: float) -> str:
    return f"{amount:.1f}".removesuffix(".0")


@asynccontextmanager
async def page(view: str) -> AsyncIterator[Page]:
    board = Board()
    with browser() as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        async with server_of(board, SystemClock()).serving(0) as address:
            yield Page(driver, board, address, view)


async def measure(report: Report, view: str, nodes: int, waiting: int, rounds: int) -> None:
    async with page(view) as shown:
        await shown.first_paint_ms(nodes, waiting)  # starts what a browser starts once
        paints = [await shown.first_paint_ms(nodes, waiting) for _ in range(rounds)]
        updates = await shown.updates_ms(nodes, rounds, waiting)
        with mock.patch.object(answers, "FIRST_PODS", MANY * MANY * nodes * waiting):  # all of it comes at once
            late = await shown.first_paint_ms(MANY * nodes, MANY * waiting)
    for kind, found, control in (("first-paint", paints, late), ("update", updates, _median(paints))):
        ours = _median(found)
        report.add(f"{kind}-{view}", "ms", ours=ours.wall)
        report.control(f"{kind}-{view}", "ms", ours=control.wall)
        report.add(f"{kind}-cpu-{view}", "ms", ours=ours.cpu)
        report.control(f"{kind}-cpu-{view}", "ms", ours=control.cpu)


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
