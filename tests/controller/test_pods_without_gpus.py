"""Pods of Lamina's schedulers that request no GPU go where pods with GPUs miss their CPU least."""

from pathlib import Path

from lamina.configuration import load
from lamina.core.host_size import HostSize
from lamina.ports.kube import NODES as NODE_OBJECTS
from lamina.ports.kube import PODS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import running
from tests.controller.usual_pods import watched
from tests.worlds.objects import admitted_pod, gpus

NODES = ["node-0", "node-1"]


def with_cpu(pod: Object, cores: int) -> Object:
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": str(cores)}
    return pod


async def learned(config: str = "") -> Bench:
    """Two nodes of two GPUs, with 16 and 64 cores; the usual pod takes a GPU and 8 cores."""
    bench = Bench(config=load(config, "test"))
    for node, cores in zip(NODES, (16, 64), strict=True):
        bench.offer(node, *gpus(2, prefix=node))
        allocatable = {"cpu": str(cores), "memory": "100Gi"}
        await bench.kube.create(NODE_OBJECTS, {"metadata": {"name": node}, "status": {"allocatable": allocatable}})
    for number in range(30):
        await bench.kube.create(PODS, with_cpu(admitted_pod(f"p{number}", gpu=1), 8))
    await watched(bench)
    await bench.scheduler.packing.learn()
    return bench


async def test_cpu_that_pods_with_gpus_need_is_left_to_them() -> None:
    bench = await learned()
    scores = bench.scheduler.scores_without_gpus(bench.parse(with_cpu(admitted_pod("plain"), 4)), NODES).by_node()
    assert scores["node-1"] == 10 > scores["node-0"]


async def test_nodes_without_gpus_come_first() -> None:
    bench = await learned()
    pod = bench.parse(with_cpu(admitted_pod("plain"), 4))
    assert bench.scheduler.scores_without_gpus(pod, [*NODES, "cpu-0", "cpu-1"]).by_node() == {
        **dict.fromkeys(NODES, 0),
        **dict.fromkeys(["cpu-0", "cpu-1"], 10),
    }


async def test_there_is_no_preference_under_another_policy_or_before_something_was_learned() -> None:
    pod = with_cpu(admitted_pod("plain"), 4)
    spread = await learned("placement:\n  nodePolicy: spread\napiVersion: lamina.dev/v1alpha1\nkind: Configuration\n")
    assert spread.scheduler.scores_without_gpus(spread.parse(pod), NODES).by_node() == {}
    fresh = Bench()
    fresh.offer("node-0", *gpus(2))
    assert fresh.scheduler.packing.node_values(None, HostSize()) is not None
    assert fresh.scheduler.scores_without_gpus(fresh.parse(pod), NODES[:1]).by_node() == {}


async def test_a_pod_with_gpus_is_left_to_the_other_extender(tmp_path: Path) -> None:
    async with running(FakeKube(), tmp_path) as cluster:
        for pod in (admitted_pod("gpu", gpumem=1000), admitted_pod("odd", gpumem="1.5")):
            body = {"Pod": pod, "NodeNames": NODES}
            assert await cluster.scheduler.ask("prioritize-without-gpus", body) == []
