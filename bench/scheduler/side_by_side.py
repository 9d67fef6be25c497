"""The same kube-scheduler over the same cluster: without an extender, with Lamina's controller, with a wasteful one,
and with an extender that decides nothing.

Nodes and Inventories are objects of a real API server, and nothing runs on them. The scheduler is stopped while pods
are created, so that creating them takes no time from deciding about them. The time counts from when it goes on until
the last pod has a node, requests from before the first pod is created.
"""

import asyncio
import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
import yaml

from bench.control_plane import ControlPlane, control_plane
from bench.machine import cpu_s
from bench.scheduler import cluster, load
from lamina.configuration import DEFAULT
from lamina.controller import crds
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import Outside
from lamina.install.scheduler_config import ExtenderAccess, scheduler_config
from lamina.ports.kube import INVENTORIES, NODES, PODS, AlreadyExists, Object, Resource

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_AT_ONCE = 32
_WARM_UP = 50
_SETTLE_S = 2.0
"""Events and what a controller writes after a bind are written by then."""
_WITHIN_S = 240.0
_COUNTED = re.compile(r'^apiserver_request_total\{.*resource="[^"]+".*\} (\S+)$', re.MULTILINE)
"""Requests for objects. Those for health and metrics name no resource."""


@dataclass(frozen=True)
class Run:
    """Pods bound a second, requests of all clients per pod, and CPU of the controller per pod, with what it does before
    and after. `placing_ms` is the CPU per pod that each program takes until the last pod is bound."""

    pods_per_s: float
    requests: float
    controller_ms: float
    placing_ms: Mapping[str, float]


async def side_by_side(nodes: int, pods: int) -> dict[str, Run]:
    """By name: `plain` without an extender, and with one by the program's name. Raises NoPrograms."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        async with control_plane(Path(name)) as plane:
            await _create_nodes(plane, nodes)
            document = scheduler_config(DEFAULT, version=plane.version, access=ExtenderAccess("", ""), weight=10)
            async with plane.scheduler(document | {"extenders": []}) as scheduler:
                runs = {"plain": await _run(plane, "plain", pods, scheduler)}
            # The controller registers its webhook, which stays: the one without comes first.
            for program, count in (("undecided", pods), ("server", pods), ("wasteful", max(pods // 5, 20))):
                runs[program] = await _with_extender(plane, nodes, count, program)
    return runs


async def _with_extender(plane: ControlPlane, nodes: int, pods: int, program: str) -> Run:
    async with load.controller(plane.kubeconfig, nodes, program) as control:
        access = ExtenderAccess(control.url, "")
        document = scheduler_config(DEFAULT, version=plane.version, access=access, weight=10)
        async with plane.scheduler(document) as scheduler:
            return await _run(plane, program, pods, scheduler, {"controller": control.pid})


async def _run(
    plane: ControlPlane,
    kind: str,
    pods: int,
    scheduler: "Popen[bytes]",
    controller: Mapping[str, int] = MappingProxyType({}),
) -> Run:
    programs = {**controller, "kube-scheduler": scheduler.pid, **plane.pids}
    await _bound(plane, programs, [_pod(kind, number) for number in range(_WARM_UP)])
    await asyncio.sleep(_SETTLE_S)
    asked, used = await _requests(plane), _cpu_s(controller)
    placing = await _bound(plane, programs, [_pod(kind, number) for number in range(_WARM_UP, _WARM_UP + pods)])
    await asyncio.sleep(_SETTLE_S)
    controller_ms = sum((_cpu_s(controller) - used).values()) / pods * 1e3
    requests = (await _requests(plane) - asked) / pods
    placing_ms = {name: seconds / pods * 1e3 for name, seconds in placing.cpu_s.items()}
    return Run(pods / placing.seconds, requests, controller_ms, placing_ms)


def _cpu_s(programs: Mapping[str, int]) -> Counter[str]:
    return Counter({name: cpu_s(pid) for name, pid in programs.items()})


class _Placing(NamedTuple):
    """From when the scheduler goes on until the last pod has a node."""

    seconds: float
    cpu_s: Counter[str]


async def _bound(plane: ControlPlane, programs: Mapping[str, int], pods: list[Object]) -> _Placing:
    """Create the pods while the scheduler is stopped, and wait until all have a node."""
    version = (await plane.kube.list(PODS, namespace="default")).version
    os.kill(programs["kube-scheduler"], signal.SIGSTOP)
    try:
        await _at_once(plane.kube.create(PODS, pod) for pod in pods)
        await asyncio.sleep(_SETTLE_S)
    finally:
        used, began = _cpu_s(programs), time.perf_counter()
        os.kill(programs["kube-scheduler"], signal.SIGCONT)
    waiting = {pod["metadata"]["name"] for pod in pods}
    try:
        async with asyncio.timeout(_WITHIN_S):
            async for event in plane.kube.watch(PODS, version, namespace="default"):
                if event.object.get("spec", {}).get("nodeName"):
                    waiting.discard(event.object["metadata"]["name"])
                if not waiting:
                    break
    except TimeoutError:
        raise RuntimeError(f"{len(waiting)} pods have no node; kube-scheduler: {plane.log('kube-scheduler')}") from None
    return _Placing(time.perf_counter() - began, _cpu_s(programs) - used)


def _pod(kind: str, number: int) -> Object:
    """A plain pod requests the same of kube-scheduler, and nothing that only the extender knows."""
    made = cluster.new_pod(f"{kind}-{number}")
    resources = made["spec"]["containers"][0]["resources"]
    if kind == "plain":
        resources["limits"] = {"nvidia.com/gpu": resources["limits"]["nvidia.com/gpu"]}
    resources["requests"] |= resources["limits"]
    made["spec"]["schedulerName"] = DEFAULT.schedulers.assigned
    made["spec"]["containers"][0]["volumeMounts"] = []
    return {"metadata": {key: made["metadata"][key] for key in ("name", "namespace", "labels")}, "spec": made["spec"]}


async def _create_nodes(plane: ControlPlane, nodes: int) -> None:
    for namespace in ("default", DEFAULT_NAMESPACE):
        with suppress(AlreadyExists):
            await plane.kube.create(_NAMESPACES, {"metadata": {"name": namespace}})
    await crds.apply(plane.kube)
    await _at_once(plane.kube.create(NODES, _node(host)) for host in cluster.hosts(nodes))
    await _at_once(_until_served(plane, inventory) for inventory in cluster.inventories(nodes))


def _node(host: Object) -> Object:
    amounts = {**host["status"]["allocatable"], "pods": "1000", "nvidia.com/gpu": str(10 * cluster.GPUS)}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    return {"metadata": {"name": host["metadata"]["name"]}, "status": status}


async def _until_served(plane: ControlPlane, inventory: Object) -> None:
    """A new kind of object is served a moment after its definition was written."""
    written = {"metadata": {"name": inventory["metadata"]["name"]}, "spec": inventory["spec"]}
    for _ in range(100):
        with suppress(Outside):
            await plane.kube.create(INVENTORIES, written)
            return
        await asyncio.sleep(0.1)
    raise RuntimeError("the API server does not serve inventories")


async def _at_once(works: Iterable[Awaitable[Any]]) -> None:
    """Some of these at a time."""
    pending = iter(works)

    async def worker() -> None:
        for work in pending:
            await work

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))


async def _requests(plane: ControlPlane) -> float:
    """How many requests for objects the API server has answered."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    url = f"{config['clusters'][0]['cluster']['server']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as response:
        return sum(map(float, _COUNTED.findall(await response.text())))
