"""kube-scheduler's part: filters and prioritizes one pod after the other, and binds each while the next is filtered.

As kube-scheduler does, it asks for scores only where more than one node fits.

Pods are created over the API before the first is filtered, and an event is written for each that is bound, so that the
API server counts what it counts in a cluster.
"""

import asyncio
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
import yaml

from bench.machine import ROOT
from bench.scheduler import cluster
from lamina.core.component_names import FILTER_TO_BEST
from lamina.ports.kube import Object

_READY_WITHIN_S = 300.0
_WATCH_S = 0.5


@dataclass
class Control:
    """A running controller, with what it took to start."""

    url: str
    session: aiohttp.ClientSession
    pid: int
    nodes: int
    start_s: float
    api: str = ""
    """The URL of the API server."""
    names: bytes = b""
    times: dict[str, list[float]] = field(default_factory=lambda: {FILTER_TO_BEST: [], "prioritize": [], "bind": []})
    refused: int = 0

    async def ask(self, verb: str, body: bytes) -> Any:
        began = time.perf_counter()
        async with self.session.post(f"{self.url}/{verb}", data=body) as response:
            answer = await response.read()
        self.times[verb].append(time.perf_counter() - began)
        return msgspec.json.decode(answer)

    async def filter(self, pod: Object) -> list[str]:
        body = b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (msgspec.json.encode(pod), self.names)
        answer = await self.ask(FILTER_TO_BEST, body)
        if answer.get("error"):
            raise RuntimeError(f"the controller refuses to filter: {answer['error']}")
        fitting: list[str] = answer["nodenames"]
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
        event = {"metadata": {"name": f"{meta['name']}.scheduled"}, "reason": "Scheduled"}
        await self._create("events", event)

    async def create(self, pods: list[Object]) -> None:
        """Create these pods, and give the watches of the controller time to report them."""
        for pod in pods:
            pod["metadata"] = (await self._create("pods", pod))["metadata"]
        await asyncio.sleep(_WATCH_S)

    async def requests(self) -> int:
        """How many requests the API server has answered."""
        async with self.session.get(f"{self.api}/requests") as response:
            return sum((await response.json()).values())

    async def _create(self, plural: str, obj: Object) -> Any:
        url = f"{self.api}/api/v1/namespaces/default/{plural}"
        async with self.session.post(url, data=msgspec.json.encode(obj)) as response:
            response.raise_for_status()
            return msgspec.json.decode(await response.read())

    def resident_mib(self) -> float:
        """The most memory that the process has held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024


@asynccontextmanager
async def control(nodes: int, pods: int, kind: str = "server") -> AsyncIterator[Control]:
    """A controller in a process of its own, once it is ready, next to an API server in another process.

    Of a `kind` other than `server`, see `wasteful`.
    """
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        kubeconfig = Path(name) / "kubeconfig"
        async with _process("api_server", str(nodes), str(pods), str(kubeconfig)) as server:
            await _written(server, kubeconfig)
            async with controller(kubeconfig, nodes, kind) as started:
                yield started


@asynccontextmanager
async def controller(kubeconfig: Path, nodes: int, kind: str = "server") -> AsyncIterator[Control]:
    """A controller in a process of its own, once it is ready. Next to the kubeconfig, it writes where it listens."""
    addresses = kubeconfig.with_name("addresses.json")
    addresses.unlink(missing_ok=True)
    api = yaml.safe_load(kubeconfig.read_bytes())["clusters"][0]["cluster"]["server"]
    began = time.perf_counter()
    async with _process(kind, str(kubeconfig), str(addresses)) as process, aiohttp.ClientSession() as session:
        url = await _ready(process, addresses, session)
        started = Control(url, session, process.pid, nodes, time.perf_counter() - began, api)
        started.names = msgspec.json.encode([cluster.node_name(number) for number in range(nodes)])
        yield started


@asynccontextmanager
async def _process(module: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    command = [sys.executable, "-m", f"bench.scheduler.{module}", *arguments]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=asyncio.subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _written(process: asyncio.subprocess.Process, file: Path) -> None:
    began = time.perf_counter()
    while not file.exists():
        if process.returncode is not None:
            raise RuntimeError(f"a process of the benchmark ended with exit status {process.returncode}")
        if time.perf_counter() > began + _READY_WITHIN_S:
            raise RuntimeError("a process of the benchmark was not ready in time")
        await asyncio.sleep(0.02)


async def _ready(process: asyncio.subprocess.Process, addresses: Path, session: aiohttp.ClientSession) -> str:
    await _written(process, addresses)
    url: str = msgspec.json.decode(addresses.read_bytes())["extenderHttp"]
    began = time.perf_counter()
    while time.perf_counter() < began + _READY_WITHIN_S:
        async with session.get(f"{url}/readyz") as response:
            if response.status == 200:
                return url
        await asyncio.sleep(0.02)
    raise RuntimeError("the controller was not ready in time")


async def schedule(to: Control, pods: list[Object]) -> float:
    """Place these pods; returns the seconds until the last is bound."""
    draw = random.Random(len(pods))
    began = time.perf_counter()
    binds = []
    for pod in pods:
        fitting = await to.filter(pod)
        if fitting:
            node = fitting[0] if len(fitting) == 1 else await to.best(pod, fitting, draw)
            binds.append(asyncio.create_task(to.bind(pod, node)))
    await asyncio.gather(*binds)
    return time.perf_counter() - began
