"""The lists through a real kube-scheduler and a real controller: nodes and inventories are objects, and nothing runs.

Pods come in the order of the replay, none leaves. At most BACKLOG of them wait for a decision, so that the policy knows
the pods that have come and not those to come. What is allocated counts when every pod up to 100 % requested has been
decided.
"""

import asyncio
import contextlib
import re
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import aiohttp
import msgspec
import numpy as np

from bench.control_plane import ControlPlane, control_plane
from bench.machine import ROOT
from bench.packing.replay import arrivals
from bench.packing.traces import GPU, Nodes, Pod, capacity
from lamina.configuration import DEFAULT
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import write_spec
from lamina.errors import Outside
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.ports.kube import INVENTORIES, NODES, PODS, AlreadyExists, Object, Resource

BACKLOG = 50
_SLOTS = 100
_POLL_S = 0.1
_SETTLE_S = 15.0
"""Longer than kube-scheduler's longest back-off."""
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@dataclass(frozen=True)
class LiveRun:
    """Part of the GPUs allocated when 100 % was requested, binds that the controller refused, and pods a second."""

    allocated: float
    refused: int
    pods_per_s: float


async def live_run(nodes: Nodes, pods: Sequence[Pod], seed: int, *, program: str = "server") -> LiveRun:
    """One seed: the same shuffle of pods and nodes as the replay's.

    `program` is the module of `bench.scheduler` that runs the controller.
    """
    random = np.random.default_rng(seed)
    full = capacity(nodes)
    coming = arrivals(pods, int(1.3 * full), random)
    order = random.permutation(len(nodes.cpu))
    asked = np.cumsum([pod.asked for pod in coming])
    coming = coming[: int(np.searchsorted(asked, full, side="right"))]
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        async with control_plane(Path(name)) as plane:
            await _create_nodes(plane, nodes, order)
            async with running_controller(plane, program) as (url, session):
                access = ExtenderAccess(url, "")
                document = scheduler_config(DEFAULT, version=plane.version, access=access, weight=10)
                async with plane.scheduler(document) as scheduler:
                    loop = asyncio.get_running_loop()
                    began = loop.time()
                    await _feed(plane, coming, scheduler)
                    seconds = loop.time() - began
                    await asyncio.sleep(_SETTLE_S)
                    placed = await _placed(plane)
                    refused = await _refused(url, session)
    allocated = sum(pod.asked for number, pod in enumerate(coming) if _name(number) in placed)
    return LiveRun(allocated / full, refused, len(coming) / seconds)


async def _create_nodes(plane: ControlPlane, nodes: Nodes, order: np.ndarray) -> None:
    for namespace in ("default", DEFAULT_NAMESPACE):
        with contextlib.suppress(AlreadyExists):
            await plane.kube.create(_NAMESPACES, {"metadata": {"name": namespace}})
    await crds.apply(plane.kube)
    for place, row in enumerate(order.tolist()):
        name, count = f"node-{place:04d}", int(nodes.gpus[row])
        allocatable = {
            "cpu": f"{nodes.cpu[row]}m",
            "memory": f"{nodes.memory[row]}Mi",
            "pods": "1000",
            "nvidia.com/gpu": str(_SLOTS * count),
        }
        status = {"capacity": allocatable, "allocatable": allocatable}
        status["conditions"] = [{"type": "Ready", "status": "True"}]  # type: ignore[assignment]
        await plane.kube.create(NODES, {"metadata": {"name": name}, "status": status})
        gpus = tuple(_gpu(place, index, nodes.models[int(nodes.model[row])]) for index in range(count))
        spec = write_spec(Inventory(node=name, driver="550.54.15", gpus=gpus))
        await _until_served(plane, {"metadata": {"name": name}, "spec": spec})


def _gpu(node: int, index: int, model: str) -> Gpu:
    """A GPU of the list: a thousandth of it stands for a MiB, and ten for a percent of its time."""
    uuid = f"GPU-{node:08d}-0000-4000-8000-{index:012d}"
    return Gpu(uuid=uuid, index=index, model=model, memory_mib=GPU, capacity_mib=GPU, slots=_SLOTS)


async def _until_served(plane: ControlPlane, inventory: Object) -> None:
    """A new kind of object is served a moment after its definition was written."""
    for _ in range(100):
        try:
            await plane.kube.create(INVENTORIES, inventory)
            return
        except Outside:
            await asyncio.sleep(0.1)
    raise RuntimeError("the API server does not serve inventories")


def _name(number: int) -> str:
    return f"pod-{number:05d}"


def _object(number: int, pod: Pod) -> Object:
    ask = pod.ask
    requests = {"cpu": f"{ask.cpu}m", "memory": f"{ask.memory}Mi"}
    limits = {}
    if ask.gpus:
        limits = {"nvidia.com/gpu": str(ask.gpus), "nvidia.com/gpumem": str(min(ask.gpu_memory))}
        limits["nvidia.com/gpucores"] = str(ask.gpu_cores * 100 // GPU)
    container = {"name": "main", "image": "none", "resources": {"requests": requests | limits, "limits": limits}}
    meta = {"name": _name(number), "namespace": "default"}
    return {"metadata": meta, "spec": {"schedulerName": DEFAULT.schedulers.assigned, "containers": [container]}}


async def _feed(plane: ControlPlane, coming: Sequence[Pod], scheduler: "Popen[bytes]") -> None:
    """Create the pods; each when at most BACKLOG of those before have not been decided."""
    undecided: deque[str] = deque()
    for number, pod in enumerate(coming):
        await plane.kube.create(PODS, _object(number, pod))
        undecided.append(_name(number))
        if len(undecided) > BACKLOG:
            await _until_decided(plane, undecided.popleft(), scheduler)
        if sys.stderr.isatty() and number % BACKLOG == 0:
            print(f"\r{number} of {len(coming)} pods", end="", file=sys.stderr)
    for name in undecided:
        await _until_decided(plane, name, scheduler)


async def _until_decided(plane: ControlPlane, name: str, scheduler: "Popen[bytes]") -> None:
    while not _decided(await plane.kube.get(PODS, name, namespace="default")):
        if scheduler.poll() is not None:
            raise RuntimeError("kube-scheduler ended: " + plane.log("kube-scheduler"))
        await asyncio.sleep(_POLL_S)


def _decided(pod: Object) -> bool:
    """Whether the pod has a node, or kube-scheduler has found none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return bool(pod["spec"].get("nodeName")) or any(each.get("reason") == "Unschedulable" for each in conditions)


async def _placed(plane: ControlPlane) -> set[str]:
    pods = (await plane.kube.list(PODS, namespace="default")).items
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


async def _refused(url: str, session: aiohttp.ClientSession) -> int:
    """Binds that the controller refused."""
    async with session.get(f"{url}/metrics") as response:
        text = await response.text()
    found = re.findall(r'^lamina_\w*decisions_total\{outcome="refused",verb="bind"\} (\S+)', text, re.MULTILINE)
    found += re.findall(r'^lamina_\w*decisions_total\{verb="bind",outcome="refused"\} (\S+)', text, re.MULTILINE)
    return int(sum(map(float, found)))


async def _ready(url: str, session: aiohttp.ClientSession) -> None:
    for _ in range(600):
        async with session.get(f"{url}/readyz") as response:
            if response.status == 200:
                return
        await asyncio.sleep(0.1)
    raise RuntimeError("the controller was not ready in time")


@asynccontextmanager
async def running_controller(plane: ControlPlane, program: str) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """A controller in a process of its own, once it is ready: the URL of its extender."""
    addresses = plane.folder / "addresses.json"
    command = [sys.executable, "-m", f"bench.scheduler.{program}", str(plane.kubeconfig), str(addresses)]
    with (plane.folder / "control.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=log, stderr=log)
    try:
        async with aiohttp.ClientSession() as session:
            while not addresses.exists():
                if process.returncode is not None:
                    raise RuntimeError("the controller ended: " + plane.log("control"))
                await asyncio.sleep(0.1)
            url = str(msgspec.json.decode(addresses.read_bytes())["extenderHttp"])
            await _ready(url, session)
            yield url, session
    finally:
        process.terminate()
        await process.wait()
