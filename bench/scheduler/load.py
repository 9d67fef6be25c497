"""kube-scheduler's part: filters and prioritizes one pod after the other, and binds each while the next is filtered."""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.machine import ROOT
from bench.scheduler import cluster
from lamina.ports.kube import Object

_READY_WITHIN_S = 300.0


@dataclass
class Control:
    """A running controller, with what it took to start."""

    url: str
    session: aiohttp.ClientSession
    pid: int
    nodes: int
    start_s: float
    names: bytes = b""
    times: dict[str, list[float]] = field(default_factory=lambda: {"filter": [], "prioritize": [], "bind": []})
    refused: int = 0

    async def ask(self, verb: str, body: bytes) -> Any:
        began = time.perf_counter()
        async with self.session.post(f"{self.url}/{verb}", data=body) as response:
            answer = await response.read()
        self.times[verb].append(time.perf_counter() - began)
        return msgspec.json.decode(answer)

    async def filter(self, pod: Object) -> list[str]:
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (msgspec.json.encode(pod), self.names)
        fitting: list[str] = (await self.ask("filter", body))["nodenames"]
        return fitting

    async def best(self, pod: Object, fitting: list[str], draw: random.Random) -> str:
        names = msgspec.json.encode(fitting)
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (msgspec.json.encode(pod), names)
        scores = await self.ask("prioritize", body)
        most = max(each["score"] for each in scores)
        return str(draw.choice([each["host"] for each in scores if each["score"] == most]))

    async def bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        args = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        answer = await self.ask("bind", msgspec.json.encode(args))
        self.refused += bool(answer["error"])

    def cpu_s(self) -> float:
        """Seconds of CPU that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """The most memory that the process has held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@asynccontextmanager
async def control(nodes: int, pods: int) -> AsyncIterator[Control]:
    """A controller in a process of its own, once it is ready."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        addresses = Path(folder) / "addresses.json"
        command = [sys.executable, "-m", "bench.scheduler.server", str(nodes), str(pods), str(addresses)]
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=asyncio.subprocess.DEVNULL)
        try:
            async with aiohttp.ClientSession() as session:
                url = await _ready(process, addresses, session, began)
                started = Control(url, session, process.pid, nodes, time.perf_counter() - began)
                started.names = msgspec.json.encode([cluster.node_name(number) for number in range(nodes)])
                yield started
        finally:
            process.kill()
            await process.wait()


async def _ready(
    process: asyncio.subprocess.Process, addresses: Path, session: aiohttp.ClientSession, began: float
) -> str:
    while time.perf_counter() < began + _READY_WITHIN_S:
        if process.returncode is not None:
            raise RuntimeError(f"the controller ended with exit status {process.returncode}")
        if addresses.exists():
            url: str = msgspec.json.decode(addresses.read_bytes())["extenderHttp"]
            async with session.get(f"{url}/readyz") as response:
                if response.status == 200:
                    return url
        await asyncio.sleep(0.02)
    raise RuntimeError("the controller was not ready in time")


async def schedule(to: Control, first: int, count: int) -> float:
    """Place `count` new pods; returns the seconds until the last is bound."""
    draw = random.Random(first)
    began = time.perf_counter()
    binds = []
    for number in range(first, first + count):
        pod = cluster.new_pod(f"new-{number}")
        fitting = await to.filter(pod)
        if fitting:
            binds.append(asyncio.create_task(to.bind(pod, await to.best(pod, fitting, draw))))
    await asyncio.gather(*binds)
    return time.perf_counter() - began
