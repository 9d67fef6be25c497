"""The packing policy in a live cluster: it chooses the node and the GPU, learns, and follows what is told."""

import asyncio
import contextlib

import pytest

from lamina.control.ledger import reservation
from lamina.dialects import parse
from lamina.model.grants import ContainerGrant, Share
from lamina.model.host_size import HostSize
from lamina.placement import Placement
from lamina.placement.packing.best_fit import best_fit
from lamina.ports.kube import NODES as NODE_OBJECTS
from lamina.ports.kube import PODS, Object
from tests.control.binders import Bench
from tests.control.cluster import admitted_pod, gpus

NODES = ["node-0", "node-1"]


def pod(name: str, **limits: object) -> Object:
    made = admitted_pod(name, **limits)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def cluster() -> Bench:
    """Two nodes of two GPUs; on GPU-1 of node-1 a pod holds 20000 of 32768 MiB and half of the time."""
    bench = Bench()
    for node in NODES:
        bench.offer(node, *gpus(2))
    share = Share(gpu="GPU-1", memory_mib=20_000, cores=50)
    at = reservation("node-1", (ContainerGrant(name="main", shares=(share,)),), 0.0)
    bench.ledger.reserve("held", "default", "held", at)
    return bench


async def test_a_share_goes_where_least_is_left_over() -> None:
    bench = cluster()
    made = await bench.pod("a", gpumem=12_000, gpucores=50)
    scores = bench.decisions.scores(made, NODES)
    assert scores["node-1"] > scores["node-0"]
    assert await bench.bind(made, "node-1") == ""
    [grant] = await bench.grants()
    assert [share["gpu"] for share in grant["spec"]["containers"][0]["shares"]] == ["GPU-1"]


async def watched(bench: Bench) -> None:
    """All that exists is told."""
    task = asyncio.create_task(bench.watching.run())
    await asyncio.wait_for(bench.watching.rebuilt.wait(), 60)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def learnt(*pods: Object) -> Bench:
    """The cluster after a start with these pods in it."""
    bench = cluster()
    for each in pods:
        await bench.kube.create(PODS, each)
    await watched(bench)
    await bench.decisions.packing.learn()
    return bench


def usual() -> list[Object]:
    return [pod(f"p{number}", gpumem=1000 * (1 + number % 8), gpucores=10) for number in range(60)]


async def test_without_history_it_is_best_fit() -> None:
    bench = cluster()
    await bench.decisions.packing.learn()
    made = pod("q", gpumem=12_000, gpucores=50)
    request = parse(made, bench.configuration.value)
    assert request is not None
    worth = bench.decisions.packing.worth(request, HostSize())
    arrays = bench.decisions.packing._arrays
    ask = arrays.ask(request, HostSize())
    assert worth is not None and ask is not None
    assert worth[:2].tolist() == best_fit(arrays.cluster, ask)[0][:2].tolist()


async def test_it_learns_from_the_pods_that_exist_at_the_start() -> None:
    ended = pod("old", gpumem=700)
    ended["status"] = {"phase": "Succeeded"}
    bench = await learnt(*usual(), ended, pod("plain"))
    seen = bench.capacity.arrivals.seen
    assert seen.arrived == 61 and len(seen.counts) == 9


async def test_levels_worked_out_beside_the_loop_are_those_worked_out_at_once() -> None:
    wanted = pod("q", gpumem=3000, gpucores=10)
    one, other = await learnt(*usual()), await learnt(*usual())
    one.decisions.packing.__dict__["_ranking"] = None  # what was kept is worked out anew
    one.decisions.packing.__dict__["_tried"] = -1
    await one.decisions.packing.learn()
    await one.decisions.prepare(wanted)
    assert one.decisions.scores(wanted, NODES) == other.decisions.scores(wanted, NODES)


async def test_the_policy_follows_new_nodes_and_other_cards() -> None:
    bench = await learnt(*usual())
    bench.offer("node-2", *gpus(4, memory=16_000))
    bench.ledger.inventory_gone("node-0")
    for _ in range(2):
        wanted = pod("q", gpumem=12_000, gpucores=50)
        await bench.decisions.prepare(wanted)
        scores = bench.decisions.scores(wanted, [*NODES, "node-2"])
        assert scores["node-0"] == 0 and sorted(scores.values())[-1] == 10
        await bench.decisions.packing.learn()
    assert set(bench.decisions.scores(pod("r", gpu=3), [*NODES, "node-2"]).values()) == {0}


async def test_cpu_that_is_short_counts() -> None:
    """Of two equal nodes with GPUs, a pod that needs little CPU goes where little is left."""
    bench = Bench()
    for name, cpu in (("node-0", "64"), ("node-1", "4")):
        bench.offer(name, *gpus(2))
        node = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "256Gi"}}}
        await bench.kube.create(NODE_OBJECTS, node)
    for each in usual():
        each["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8", "memory": "1Gi"}
        await bench.kube.create(PODS, each)
    await watched(bench)
    await bench.decisions.packing.learn()
    small = pod("s", gpumem=3000, gpucores=10)
    small["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1", "memory": "1Gi"}
    scores = bench.decisions.scores(small, NODES)
    assert scores["node-1"] == 10 > scores["node-0"]


async def test_of_equal_nodes_one_alone_is_best_whatever_the_order() -> None:
    bench = await learnt(*usual())
    bench.offer("node-2", *gpus(2))
    wanted = pod("q", gpumem=32_000, gpucores=90)
    names = ["node-2", "node-1", "node-0"]
    assert bench.decisions.scores(wanted, names) == dict(
        reversed(list(bench.decisions.scores(wanted, names[::-1]).items()))
    )
    assert list(bench.decisions.scores(wanted, names).values()).count(10) == 1


@pytest.mark.parametrize(
    "limits",
    [
        {"gpumem": 12_000, "gpucores": 50}, {"gpumem": 12_768, "gpucores": 50}, {"gpumem_percentage": 40},
        {"gpu": 1}, {"gpu": 2}, {"gpu": 2, "gpumem": 12_000}, {"gpu": 2, "gpumem": 20_000},
        {"gpucores": 60, "gpumem": 1},
    ],
)  # fmt: skip
async def test_it_proposes_nothing_that_does_not_fit(limits: dict[str, int]) -> None:
    bench = await learnt(*usual())
    made = pod("q", **limits)
    request = parse(made, bench.configuration.value)
    assert request is not None
    fitting = bench.decisions.filter(made, NODES).fitting
    scores = bench.decisions.scores(made, NODES)
    for node in NODES:
        placed = isinstance(bench.decisions.place(made, request, node), Placement)
        assert placed == (node in fitting)
        assert placed or scores[node] == 0
    taken = bench.decisions.packing.gpus(request, HostSize(), "node-1")
    if limits in ({"gpu": 2}, {"gpu": 2, "gpumem": 20_000}):
        assert taken == frozenset() and fitting == ["node-0"]


def test_what_the_arrays_cannot_say_is_placed_all_the_same() -> None:
    bench = cluster()
    wished = pod("w", gpumem=1000)
    wished["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": "GPU-0"}
    assert bench.decisions.filter(wished, NODES).fitting == NODES
    assert set(bench.decisions.scores(wished, NODES)) == set(NODES)
