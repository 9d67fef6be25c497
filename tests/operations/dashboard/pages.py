"""The page of a board in a browser, and documents to put on it."""

import asyncio
from typing import Any

from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    GpuCard,
    GpuPart,
    NodeCard,
    PodCard,
    ShareCard,
)
from tests.waiting import until


class Page:
    """A page of one board in the browser, which other threads ask, so that the server can answer."""

    def __init__(self, driver: Any, board: Board, address: str) -> None:
        self.driver, self.board, self.address = driver, board, address

    async def run(self, script: str, *arguments: Any) -> Any:
        return await asyncio.to_thread(self.driver.execute_script, f"return {script}", *arguments)

    async def until(self, script: str, *arguments: Any) -> Any:
        return await until(lambda: self.run(script, *arguments), f"{script}, {arguments}")

    async def go(self, address: str) -> None:
        """Open a view by what follows `#/`, as from a bookmark."""
        await asyncio.to_thread(self.driver.get, "about:blank")
        await asyncio.to_thread(self.driver.get, f"{self.address}#/{address}")

    async def back(self) -> None:
        await asyncio.to_thread(self.driver.back)

    async def type(self, selector: str, text: str) -> None:
        """Type into this element, instead of what is there."""
        await self.run("document.querySelector(arguments[0]).select()", selector)
        await self.keys(*(text or "\ue017"))  # Delete

    async def choose(self, selector: str, value: str) -> None:
        script = "(() => { const made = document.querySelector(arguments[0]); made.value = arguments[1];"
        await self.run(f"{script} made.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()", selector, value)

    async def status(self, start: str) -> None:
        """Wait until the status starts with these words."""
        await self.until("document.querySelector('#status').textContent.startsWith(arguments[0])", start)

    async def keys(self, *keys: str) -> None:
        """Type into what has the focus."""
        await asyncio.to_thread(self.driver.switch_to.active_element.send_keys, *keys)

    async def texts(self, selector: str) -> list[str]:
        """As a reader sees them. What the browser has not laid out yet has no such text, so this waits for it."""
        all_of = "[...document.querySelectorAll(arguments[0])]"
        await self.until(f"{all_of}.every((each) => each.innerText || !each.textContent)", selector)
        found: list[str] = await self.run(f"{all_of}.map((each) => each.innerText)", selector)
        return found


def gpu(node: str, index: int, *parts: GpuPart, **fields: Any) -> GpuCard:
    amounts = {"memory_mib": 16000, "capacity_mib": 16000, "cores_capacity": 100, "slots": 10} | fields
    return GpuCard(uuid=f"GPU-{node}-{index}", index=index, model="Tesla T4", parts=parts, **amounts)


def node(name: str, *gpus: GpuCard, **fields: Any) -> NodeCard:
    return NodeCard(name=name, gpus=gpus, **fields)


def running(name: str, memory_mib: int = 4000, *, most_mib: int = 0) -> PodCard:
    share = ShareCard(
        container="main", node="n", gpu="GPU-n-0", index=0, mode="quota", memory_mib=memory_mib,
        most_mib=most_mib or memory_mib, physical_mib=memory_mib, cores=30,
    )  # fmt: skip
    return PodCard(namespace="team", name=name, state="running", phase="Running", node="n", shares=(share,))


def small(name: str = "web") -> ClusterDocument:
    """A pod with a quarter of a GPU, and one that waits."""
    part = GpuPart(pod="u1", name=f"team/{name}", namespace="team", memory_mib=4000, cores=50)
    waits = PodCard(
        namespace="team", name="big", state="pending", reason="node n: needs 99999 MiB", ways_out=("Use `less`.",)
    )
    nodes = {
        "n": node("n", gpu("n", 0, part, mode="quota"), gpu("n", 1, healthy=False, reason="XID 79", cordoned=True))
    }
    return ClusterDocument(
        cluster=ClusterFigures(nodes=1, gpus=2), nodes=nodes, pods={"u1": running(name), "u2": waits}
    )
