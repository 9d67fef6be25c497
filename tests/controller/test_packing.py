"""The packing policy in a live cluster: it chooses the node and the GPU, learns, and follows what is reported."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lamina.controller.packing import policy
from lamina.core.grants import ContainerGrant, Share
from lamina.core.host_size import HostSize, asked_by
from lamina.core.requests import PodRequest
from lamina.dialects import parse
from lamina.ledger.holds import Hold
from lamina.placement import PodPlacement
from lamina.placement.packing import Ask
from lamina.placement.packing.ranking import best_fit
from lamina.ports.clock import FakeClock
from lamina.ports.kube import NODES as NODE_OBJECTS
from lamina.ports.kube import PODS, Object
from tests.controller.binders import Bench
from tests.controller.usual_pods import pod, usual, watched
from tests.waiting import canceled, until
from tests.worlds.objects import gpus

NODES = ["node-0", "node-1"]


def cluster() -> Bench:
    """Two nodes of two GPUs; on GPU-1 of node-1 a pod holds 20000 of 32768 MiB and half of the time."""
    bench = Bench()
    for node in NODES:
        bench.offer(node, *gpus(2))
    share = Share(gpu="GPU-1", memory_mib=20_000, cores=50)
    containers = (ContainerGrant(name="main", shares=(share,)),)
    bench.ledger.hold(Hold.of_shares("held", "default", "held", "node-1", containers, 0.0))
    return bench


async def test_a_share_goes_where_least_is_left_over() -> None:
    bench = cluster()
    made = await bench.pod("a", gpumem=12_000, gpucores=50)
    scores = bench.scheduler.scores(bench.parse(made), NODES).by_node()
    assert scores["node-1"] > scores["node-0"]
    assert await bench.bind(made, "node-1") == ""
    [grant] = await bench.grants()
    assert [share["gpu"] for share in grant["spec"]["containers"][0]["shares"]] == ["GPU-1"]


async def learned(*pods: Object) -> Bench:
    """The cluster after a start with these pods in it."""
    bench = cluster()
    for each in pods:
        await bench.kube.create(PODS, each)
    await watched(bench)
    await bench.scheduler.packing.learn()
    return bench


async def test_without_history_it_is_best_fit() -> None:
    bench = cluster()
    await bench.scheduler.packing.learn()
    made = pod("q", gpumem=12_000, gpucores=50)
    request = parse(made, bench.configuration.value)
    assert request is not None
    worth = bench.scheduler.packing.node_values(request, HostSize())
    arrays = bench.scheduler.packing._arrays
    ask = arrays.ask(request, HostSize())
    assert worth is not None and ask is not None
    assert worth[:2].tolist() == best_fit(arrays.cluster, ask)[0][:2].tolist()


async def test_it_learns_from_the_pods_that_exist_at_the_start() -> None:
    ended = pod("old", gpumem=700)
    ended["status"] = {"phase": "Succeeded"}
    bench = await learned(*usual(), ended, pod("plain"))
    requests = bench.cluster_state.request_mix.requests
    assert requests.arrived == 61 and len(requests.counts) == 9


async def test_levels_computed_in_a_thread_are_those_computed_at_once() -> None:
    wanted = pod("q", gpumem=3000, gpucores=10)
    one, other = await learned(*usual()), await learned(*usual())
    one.scheduler.packing._packer.use(None)  # the kept levels are computed again
    one.scheduler.packing.__dict__["_tried_version"] = -1
    await one.scheduler.packing.learn()
    await one.scheduler.warm_up(one.parse(wanted))
    assert (
        one.scheduler.scores(one.parse(wanted), NODES).by_node()
        == other.scheduler.scores(other.parse(wanted), NODES).by_node()
    )


async def test_concurrent_preparations_may_end_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second ends first, then a row changes, then the first ends: it has to learn of that row."""
    bench, other = await learned(*usual()), await learned(*usual())
    pods = [pod("first", gpumem=12_500, gpucores=10), pod("second", gpumem=13_500, gpucores=10)]
    started, may_end = [asyncio.Event() for _ in pods], [threading.Event() for _ in pods]
    loop, numbers, levels = asyncio.get_running_loop(), iter(range(len(pods))), policy._levels

    def held_up(*args: Any) -> Any:
        number = next(numbers)
        result = levels(*args)
        loop.call_soon_threadsafe(started[number].set)
        may_end[number].wait(60)
        return result

    monkeypatch.setattr(policy, "_MAX_ROWS_INLINE", 0)
    monkeypatch.setattr(policy, "_levels", held_up)
    tasks = []
    for wanted, event in zip(pods, started, strict=True):
        tasks.append(asyncio.create_task(bench.scheduler.warm_up(bench.parse(wanted))))
        await asyncio.wait_for(event.wait(), 60)
    may_end[1].set()
    await tasks[1]
    taken = tuple(Share(gpu=f"GPU-{number}", memory_mib=25_000, cores=50) for number in range(2))
    for each in (bench, other):
        containers = (ContainerGrant(name="main", shares=taken),)
        each.ledger.hold(Hold.of_shares("taker", "default", "taker", "node-0", containers, 0.0))
    bench.scheduler.scores(bench.parse(pods[1]), NODES).by_node()
    may_end[0].set()
    await tasks[0]
    for wanted in pods:
        assert (
            bench.scheduler.scores(bench.parse(wanted), NODES).by_node()
            == other.scheduler.scores(bench.parse(wanted), NODES).by_node()
        )


@pytest.mark.parametrize("count", ["65", "1024", "2147483648", "4294967297", "9E"])
async def test_a_pod_with_very_many_gpus_does_not_stop_the_learning(count: str) -> None:
    bench = await learned(*usual(), pod("huge", gpu=count))
    usual_alone = await learned(*usual())
    assert bench.scheduler.packing.learned
    wanted = pod("q", gpumem=3000, gpucores=10)
    assert (
        bench.scheduler.scores(bench.parse(wanted), NODES).by_node()
        == usual_alone.scheduler.scores(bench.parse(wanted), NODES).by_node()
    )


@pytest.mark.parametrize("amount", ["9E", "-9E", "1e99"])
async def test_huge_cpu_and_memory_overflow_nothing(amount: str) -> None:
    """On a bound pod, on a pod with GPUs, and on many pods of one node."""
    bench = cluster()
    for name in NODES:
        node = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "64", "memory": "256Gi"}}}
        await bench.kube.create(NODE_OBJECTS, node)
    wanted, bound = pod("q", gpumem=12_000), [pod(f"bound-{number}") for number in range(1100)]
    for each in bound:
        each["spec"]["nodeName"] = "node-0"
    for each in (wanted, *bound):
        each["spec"]["containers"][0]["resources"]["requests"] = {"cpu": amount, "memory": amount}
    for each in (*usual(), wanted, *bound):
        await bench.kube.create(PODS, each)
    await watched(bench)
    for _ in range(2):
        assert set(bench.scheduler.scores(bench.parse(wanted), NODES).by_node()) == set(NODES)
        request = parse(wanted, bench.configuration.value)
        assert request is not None
        bench.scheduler.packing.best_gpus(request, asked_by(wanted), "node-1")
        await bench.scheduler.packing.learn()
        await bench.scheduler.warm_up(bench.parse(wanted))
    assert bench.scheduler.packing.learned


async def followed(bench: Bench, holds: Callable[[], bool]) -> None:
    """Runs the policy's task until the condition holds; what ends the task would end the controller."""
    clock = FakeClock()
    task = asyncio.create_task(bench.scheduler.packing.run(clock))
    await until(holds, task=task, clock=clock, step_s=policy._POLL_S)
    await canceled(task)


async def test_a_policy_that_cannot_be_learned_leaves_best_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench, best = await learned(*usual()), cluster()
    tries = []

    def fails(*_: object) -> None:
        tries.append(1)
        raise OverflowError("out of bounds")

    monkeypatch.setattr(policy, "learn_policy", fails)

    def come_again() -> bool:
        bench.cluster_state.request_mix.requests.arrived *= 2
        return len(tries) >= 3

    await followed(bench, come_again)
    wanted = pod("q", gpumem=12_000, gpucores=50)
    assert (
        bench.scheduler.scores(bench.parse(wanted), NODES).by_node()
        == best.scheduler.scores(bench.parse(wanted), NODES).by_node()
    )
    [record] = caplog.records
    assert "packing policy learning" in record.getMessage() and record.exc_info


async def test_one_kind_of_pod_that_cannot_be_counted_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench, without = cluster(), await learned(*usual())
    for each in (*usual(), pod("odd", gpumem=777)):
        await bench.kube.create(PODS, each)
    await watched(bench)
    arrays = bench.scheduler.packing._arrays
    ask = arrays.ask

    def fails_once(request: PodRequest, size: HostSize) -> Ask | None:
        if request.containers[0].memory_mib == 777:
            raise OverflowError("out of bounds")
        return ask(request, size)

    monkeypatch.setattr(arrays, "ask", fails_once)
    for _ in range(2):
        await bench.scheduler.packing.learn()
        bench.scheduler.packing.__dict__["_tried_version"] = -1
    wanted = pod("q", gpumem=3000, gpucores=10)
    assert bench.scheduler.packing.learned
    assert (
        bench.scheduler.scores(bench.parse(wanted), NODES).by_node()
        == without.scheduler.scores(bench.parse(wanted), NODES).by_node()
    )
    [record] = caplog.records
    assert "memory_mib=777" in record.getMessage() and record.exc_info


async def test_the_policy_follows_new_nodes_and_other_cards() -> None:
    bench = await learned(*usual())
    bench.offer("node-2", *gpus(4, memory=16_000))
    bench.ledger.remove_inventory("node-0")
    for _ in range(2):
        wanted = pod("q", gpumem=12_000, gpucores=50)
        await bench.scheduler.warm_up(bench.parse(wanted))
        scores = bench.scheduler.scores(bench.parse(wanted), [*NODES, "node-2"]).by_node()
        assert scores["node-0"] == 0 and sorted(scores.values())[-1] == 10
        await bench.scheduler.packing.learn()
    assert set(bench.scheduler.scores(bench.parse(pod("r", gpu=3)), [*NODES, "node-2"]).by_node().values()) == {0}


async def test_kinds_of_gpus_that_are_gone_give_way() -> None:
    bench = await learned(*usual())
    packing, numbers = bench.scheduler.packing, list[int]()
    for memory in range(16_000, 16_050):
        bench.offer("node-2", *gpus(4, memory=memory))
        await packing.learn()
        numbers.append(len(packing._arrays.cluster.full_memory))
        assert packing.learned
    assert set(numbers) == {3}


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
    await bench.scheduler.packing.learn()
    small = pod("s", gpumem=3000, gpucores=10)
    small["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1", "memory": "1Gi"}
    scores = bench.scheduler.scores(bench.parse(small), NODES).by_node()
    assert scores["node-1"] == 10 > scores["node-0"]


async def test_of_equal_nodes_one_alone_is_best_whatever_the_order() -> None:
    bench = await learned(*usual())
    bench.offer("node-2", *gpus(2))
    wanted = pod("q", gpumem=32_000, gpucores=90)
    names = ["node-2", "node-1", "node-0"]
    assert bench.scheduler.scores(bench.parse(wanted), names).by_node() == dict(
        reversed(list(bench.scheduler.scores(bench.parse(wanted), names[::-1]).by_node().items()))
    )
    assert list(bench.scheduler.scores(bench.parse(wanted), names).by_node().values()).count(10) == 1


@pytest.mark.parametrize(
    "limits",
    [
        {"gpumem": 12_000, "gpucores": 50}, {"gpumem": 12_768, "gpucores": 50}, {"gpumem_percentage": 40},
        {"gpu": 1}, {"gpu": 2}, {"gpu": 2, "gpumem": 12_000}, {"gpu": 2, "gpumem": 20_000},
        {"gpucores": 60, "gpumem": 1},
    ],
)  # fmt: skip
async def test_it_proposes_nothing_that_does_not_fit(limits: dict[str, int]) -> None:
    bench = await learned(*usual())
    made = pod("q", **limits)
    request = parse(made, bench.configuration.value)
    assert request is not None
    fitting = bench.scheduler.filter(bench.parse(made), NODES).fitting
    scores = bench.scheduler.scores(bench.parse(made), NODES).by_node()
    for node in NODES:
        placed = isinstance(bench.scheduler.place(bench.parse(made), request, node), PodPlacement)
        assert placed == (node in fitting)
        assert placed or scores[node] == 0
    taken = bench.scheduler.packing.best_gpus(request, HostSize(), "node-1")
    if limits in ({"gpu": 2}, {"gpu": 2, "gpumem": 20_000}):
        assert taken == frozenset() and fitting == ["node-0"]


def test_what_the_arrays_cannot_say_is_placed_all_the_same() -> None:
    bench = cluster()
    wished = pod("w", gpumem=1000)
    wished["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": "GPU-0"}
    assert bench.scheduler.filter(bench.parse(wished), NODES).fitting == NODES
    assert set(bench.scheduler.scores(bench.parse(wished), NODES).by_node()) == set(NODES)
