"""Devices that kubelet hands out itself do not escape a quota on GPU memory: Kubernetes has to count them."""

import msgspec
import pytest

from lamina.core.gpus import NativeResource
from lamina.ports.kube import PODS
from tests.controller.binders import Bench
from tests.worlds.objects import gpu_pod, gpus, inventory

REASON = (
    "quota q does not count devices that kubelet hands out; add requests.nvidia.com/gpu to a quota of this namespace"
)
NODES = ["node-0", "node-1"]


def bench_with(hard: dict[str, int]) -> Bench:
    """node-0 hands out GPUs itself, node-1 by grants; the namespace `default` has the quota."""
    bench = Bench()
    native = msgspec.structs.replace(
        inventory("node-0"), gpus=(), native_resources=(NativeResource("nvidia.com/gpu", 2),)
    )
    bench.ledger.observe_inventory(native)
    bench.offer("node-1", *gpus(1))
    bench.quotas.observe({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
    return bench


@pytest.mark.parametrize("amount", ["gpumem", "gpucores"])
async def test_a_node_that_hands_out_devices_takes_no_pod_of_a_quota_that_does_not_count_them(amount: str) -> None:
    bench = bench_with({f"limits.nvidia.com/{amount}": 100_000})
    pod = bench.parse(await bench.pod("p", gpu=1))
    result = bench.scheduler.filter(pod, NODES)
    assert (result.fitting, result.unresolvable) == (["node-1"], {"node-0": REASON})
    alone = bench.scheduler.filter(pod, ["node-0"])
    assert (alone.fitting, alone.summary) == ([], REASON)
    assert await bench.bind(pod.obj, "node-0") == REASON and await bench.node_of(pod.obj) == ""
    assert await bench.bind(pod.obj, "node-1") == ""


@pytest.mark.parametrize(
    "hard",
    [
        {"requests.nvidia.com/gpu": 1},
        {"requests.nvidia.com/gpu": 1, "limits.nvidia.com/gpumem": 1000},
        {"limits.cpu": 1},
        {},
    ],
)
async def test_a_quota_that_counts_them_or_no_memory_changes_nothing(hard: dict[str, int]) -> None:
    bench = bench_with(hard)
    pod = bench.parse(await bench.pod("p", gpu=1))
    assert "node-0" in bench.scheduler.filter(pod, NODES).fitting
    assert await bench.bind(pod.obj, "node-0") == "" and await bench.node_of(pod.obj) == "node-0"


async def test_the_quota_of_another_namespace_is_none_of_ours() -> None:
    bench = bench_with({"limits.nvidia.com/gpumem": 0})
    pod = bench.parse(await bench.kube.create(PODS, gpu_pod("p", namespace="other", gpu=1)))
    assert "node-0" in bench.scheduler.filter(pod, NODES).fitting
