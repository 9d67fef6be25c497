"""The lab's scheduler with the controller allocates as much as the packing policy does in a replay, bind by bind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from bench.packing.policies import POLICIES, Online
from bench.packing.replay import Policy, arrivals, replay
from bench.packing.traces import Nodes, Pod, capacity
from lamina.configuration import DEFAULT
from lamina.core.component_names import FILTER_TO_BEST
from lamina.core.gpus import Gpu
from lamina.dialects import resource_names
from lamina.placement.packing import Ask
from lamina.ports.clock import SystemClock
from lamina.ports.kube import NODES, PODS, Object
from lamina.ports.kube.fake import FakeKube
from lamina_lab.scheduler.extender import ExtenderConfig, ManagedResource
from lamina_lab.scheduler.run import run
from tests.controller.cluster import RunningController, running
from tests.waiting import canceled, until
from tests.worlds.objects import admitted_pod

SEEDS = range(2)
LESS = 0.03
"""The policy learns from the same pods, but not at the same moments: a pod or two may be placed otherwise."""
GPU_SHARES = [810, 470, 320, 650, 230, 460, 590, 1000, 1000, 1000]
"""Sizes of shares that strand GPUs, as in the openb list, in thousandths of a GPU."""
READY = {"type": "Ready", "status": "True"}
CORES = [4000, 8000, 11_000]


def lists() -> tuple[Nodes, list[Pod]]:
    """Ten nodes, and pods in the format of the openb lists."""
    count = np.array([8] * 4 + [4] * 3 + [2] * 3)
    nodes = Nodes(
        cpu=np.where(count == 2, 104_000, 12_000 * count),
        memory=np.full(10, 500_000),
        gpus=count,
        model=np.zeros(10, int),
        models=("V100",),
    )
    pods = [Pod(Ask(cores, 1000, 1, (size,), size), size) for size in GPU_SHARES for cores in CORES for _ in range(2)]
    return nodes, [*pods, *(Pod(Ask(8000, 1000, 2, (1000,), 1000), 2000) for _ in range(4))]


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[RunningController]:
    nodes, _ = lists()
    kube = FakeKube()
    given = [(f"node-{row:02d}", _gpus(row, int(count))) for row, count in enumerate(nodes.gpus)]
    async with running(kube, tmp_path, *given) as cluster:
        for row, (name, _) in enumerate(given):
            amounts = {"cpu": f"{nodes.cpu[row]}m", "memory": f"{nodes.memory[row]}Mi", "pods": "200"}
            status = {"allocatable": amounts | {"nvidia.com/gpu": "800"}, "conditions": [READY]}
            await kube.patch(NODES, name, {"status": status})
        managed = tuple(
            ManagedResource(name, name in names.ignored_by_scheduler)
            for names in resource_names(DEFAULT)
            for name in names.all
        )
        extender = ExtenderConfig(cluster.urls["extenderHttp"], managed, filter_verb=FILTER_TO_BEST)
        scheduler = asyncio.create_task(run(kube, extender, SystemClock()))
        yield cluster
        await canceled(scheduler)


def _gpus(row: int, count: int) -> tuple[Gpu, ...]:
    uuids = [f"GPU-{row:02d}-{index}" for index in range(count)]
    return tuple(
        Gpu(uuid=uuid, index=index, model="V100", memory_mib=1000, capacity_mib=1000, slots=100)
        for index, uuid in enumerate(uuids)
    )


def _object(number: int, pod: Pod) -> Object:
    ask = pod.ask
    made = admitted_pod(f"p{number:03d}", gpu=ask.gpus, gpumem=ask.gpu_memory[0], gpucores=ask.gpu_cores // 10)
    made["spec"]["schedulerName"] = DEFAULT.schedulers.assigned
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{ask.cpu}m", "memory": f"{ask.memory}Mi"}
    return made


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_scheduler_allocates_what_the_replay_does(lab: RunningController, seed: int) -> None:
    nodes, pods = lists()
    random = np.random.default_rng(seed)
    coming = arrivals(pods, int(1.1 * capacity(nodes)), random)
    for number, pod in enumerate(coming):
        await lab.kube.create(PODS, _object(number, pod))

    async def decided() -> list[Object]:
        found = (await lab.kube.list(PODS)).items
        return found if all(map(_decided, found)) else []

    found = await until(decided, within_s=120, task=lab.task)
    asked = {f"p{number:03d}": pod.asked for number, pod in enumerate(coming)}
    allocated = sum(asked[pod["metadata"]["name"]] for pod in found if pod["spec"].get("nodeName"))
    least = _replayed(seed, lambda cluster, pods, random: Online(cluster)) - LESS
    assert allocated / capacity(nodes) >= least > _replayed(seed, POLICIES["spread"])
    assert await _refused_binds(lab) == 0


def _replayed(seed: int, policy: Policy) -> float:
    return replay(*lists(), policy, seed).allocated[110]


def _decided(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return bool(pod["spec"].get("nodeName")) or any(each.get("reason") == "Unschedulable" for each in conditions)


async def _refused_binds(lab: RunningController) -> float:
    async with lab.session.get(f"{lab.urls['extenderHttp']}/metrics") as response:
        lines = (await response.text()).splitlines()
    counts = [line.rsplit(" ", 1)[1] for line in lines if 'outcome="refused",verb="bind"' in line]
    return sum(map(float, counts))
