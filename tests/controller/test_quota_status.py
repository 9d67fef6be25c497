"""What a quota's status tells, and that a quota for one is not passed by two."""

import asyncio
from typing import Any

import pytest

from lamina.configuration import DEFAULT, load
from lamina.controller.quota_status import update_statuses
from lamina.ports.kube import RESOURCE_QUOTAS, Object
from tests.controller.binders import Bench
from tests.worlds.objects import gpus

HARD = {"limits.nvidia.com/gpumem": "10k", "limits.nvidia.com/gpucores": 50}


async def quota(bench: Bench, name: str = "q", **hard: Any) -> None:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"hard": hard}}
    bench.quotas.observe(await bench.kube.create(RESOURCE_QUOTAS, body))


async def reported(bench: Bench, name: str = "q") -> Object:
    await update_statuses(bench.kube, bench.quotas, bench.ledger, bench.configuration.value, bench.context.set_aside)
    found = await bench.kube.get(RESOURCE_QUOTAS, name, namespace="default")
    bench.quotas.observe(found)
    status: Object = found.get("status") or {}
    return status


async def test_the_status_follows_what_is_held() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    await quota(bench, **HARD, pods="7")
    assert (await reported(bench))["used"] == {"limits.nvidia.com/gpumem": "0", "limits.nvidia.com/gpucores": "0"}
    pod = await bench.pod("p", gpu=2, gpumem=3000, gpucores=20)
    assert await bench.bind(pod) == ""
    status = await reported(bench)
    assert status["used"] == {"limits.nvidia.com/gpumem": "6000", "limits.nvidia.com/gpucores": "40"}
    assert status["hard"] == {"limits.nvidia.com/gpumem": "10k", "limits.nvidia.com/gpucores": "50"}
    bench.ledger.remove_pod(pod["metadata"]["uid"], bench.clock.monotonic())
    assert (await reported(bench))["used"]["limits.nvidia.com/gpumem"] == "0"


async def test_nothing_is_written_twice_nor_where_nothing_is_ours() -> None:
    bench = Bench()
    await quota(bench, **HARD)
    await quota(bench, "other", pods="7")
    await reported(bench)
    before = await bench.kube.get(RESOURCE_QUOTAS, "q", namespace="default")
    await reported(bench)
    assert await bench.kube.get(RESOURCE_QUOTAS, "q", namespace="default") == before
    assert await reported(bench, "other") == {}


async def test_used_is_in_units_of_the_resource_and_never_too_little() -> None:
    bench = Bench(config=load("hami: {memoryFactor: 128}", "c"))
    bench.offer("node-0", *gpus(1))
    await quota(bench, **{"limits.nvidia.com/gpumem": 10})
    assert await bench.bind(await bench.pod("p", **{"gpumem-percentage": 1})) == ""  # 327 MiB
    assert (await reported(bench))["used"] == {"limits.nvidia.com/gpumem": "3"}


@pytest.mark.parametrize("hard", [{"limits.nvidia.com/gpumem": 1500}, {"limits.nvidia.com/gpucores": 30}])
async def test_of_two_pods_at_once_one_passes(hard: dict[str, int]) -> None:
    bench = Bench()
    for node in ("node-0", "node-1"):
        bench.offer(node, *gpus(2, prefix=node))
    await quota(bench, **hard)
    pods = [await bench.pod(f"p{number}", gpumem=1000, gpucores=20) for number in range(4)]
    answers = await asyncio.gather(*[bench.bind(pod, f"node-{place % 2}") for place, pod in enumerate(pods)])
    assert [why == "" for why in answers].count(True) == 1
    assert all("quota q allows" in why for why in answers if why)
    assert bench.configuration.value == DEFAULT
