"""Room is held between the answer that decides a pod's node and its bind, and not longer than it has to be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.controller.scheduling.assumed_pods import ASSUMED_S
from lamina.controller.scheduling.requeue import RETRY
from lamina.core.host_size import HostSize
from lamina.ports.clock import FakeClock
from lamina.ports.kube import GRANTS, PODS, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import RunningController, running
from tests.controller.pod_groups import group, member
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus

NODES = ["node-0", "node-1"]
HALF = 16384


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    nodes = [(node, gpus(1, prefix=node)) for node in NODES]
    async with running(FakeKube(), tmp_path, *nodes, clock=FakeClock()) as made:
        yield made


async def decided(cluster: RunningController, pod: Object) -> str:
    """The node that kube-scheduler decides on, as far as the extender decides; nothing where none fits."""
    fitting: list[str] = (await cluster.scheduler.filter(pod, *NODES))["nodenames"]
    if len(fitting) < 2:
        return "".join(fitting)
    scores = await cluster.scheduler.ask("prioritize", {"pod": pod, "nodenames": fitting})
    return str(max(scores, key=lambda each: each["score"])["host"])


async def bound(cluster: RunningController, pods: list[Object], nodes: list[str]) -> list[str]:
    """Why these binds, all at the same time, were refused."""
    binds = [asyncio.create_task(cluster.scheduler.bind(pod, node)) for pod, node in zip(pods, nodes, strict=True)]
    await until(lambda: all(bind.done() for bind in binds), task=cluster.task, clock=cluster.clock)
    return [bind.result() for bind in binds]


async def made(cluster: RunningController, number: int) -> list[Object]:
    return [await cluster.make(admitted_pod(f"p{i}", gpumem=HALF)) for i in range(number)]


async def test_no_bind_is_refused_for_room_that_was_given_away_meanwhile(cluster: RunningController) -> None:
    """All decisions come before the first bind."""
    pods = await made(cluster, 5)
    nodes = [await decided(cluster, pod) for pod in pods]
    assert sorted(nodes[:4]) == ["node-0", "node-0", "node-1", "node-1"] and nodes[4] == ""
    assert await bound(cluster, pods[:4], nodes[:4]) == [""] * 4


async def test_the_room_moves_with_a_bind_to_another_node(cluster: RunningController) -> None:
    pods = await made(cluster, 4)
    assert {await decided(cluster, pod) for pod in pods[:2]} == {"node-0"}
    assert await bound(cluster, pods[:1], ["node-1"]) == [""]
    others = [await decided(cluster, pod) for pod in pods[2:]]
    assert sorted(others) == NODES
    assert await bound(cluster, pods[1:], ["node-0", *others]) == [""] * 3


async def test_room_without_a_bind_becomes_free_and_pods_refused_for_it_are_tried_again(
    cluster: RunningController,
) -> None:
    pods = await made(cluster, 5)
    for pod in pods[:4]:
        await decided(cluster, pod)
    assert await decided(cluster, pods[4]) == ""
    assert isinstance(cluster.clock, FakeClock)
    for _ in range(int(ASSUMED_S) - 1):
        await cluster.clock.advance(1.0)
        assert await decided(cluster, pods[4]) == ""

    async def asked() -> str | None:
        annotations: dict[str, str] = (await cluster.kube.get(PODS, "p4", namespace="default"))["metadata"].get(
            "annotations", {}
        )
        return annotations.get(RETRY)

    at_start = await asked()

    async def tried_again() -> bool:
        return await asked() != at_start

    await until(tried_again, task=cluster.task, clock=cluster.clock)
    assert await decided(cluster, pods[4]) == "node-0"


async def test_a_pod_that_is_tried_again_finds_its_own_room(cluster: RunningController) -> None:
    pods = await made(cluster, 4)
    assert [await decided(cluster, pod) for pod in pods] == ["node-0", "node-0", "node-1", "node-1"]
    assert await decided(cluster, pods[3]) == "node-1"


async def test_a_refused_bind_frees_its_room(cluster: RunningController) -> None:
    pods = await made(cluster, 5)
    for pod in pods[:4]:
        await decided(cluster, pod)
    await cluster.kube.delete(PODS, "p0", namespace="default")
    [refusal] = await bound(cluster, pods[:1], ["node-0"])
    assert "no longer exists" in refusal
    assert await decided(cluster, pods[4]) == "node-0"


async def test_a_member_of_a_group_is_not_placed_alone(cluster: RunningController) -> None:
    await group(cluster, "a", 2)
    first = await cluster.make(member("a", 0, memory=32768))
    assert await decided(cluster, first) == "", "the other member is missing"
    [other] = await made(cluster, 1)
    assert await decided(cluster, other) == "node-0"


async def test_the_pod_gets_the_gpu_that_was_held_for_it() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    first, second = [await bench.pod(name, gpumem=20_000) for name in ("first", "second")]
    for pod in (first, second):
        bench.assumed.assume(bench.parse(pod), "node-0")
    held = {gpu: bench.memory(gpu=gpu) for gpu in ("GPU-0", "GPU-1")}
    assert held == {"GPU-0": 20_000, "GPU-1": 20_000}
    for pod in (second, first):
        bench.assumed.confirm(pod["metadata"]["uid"], "node-0")
        assert await bench.bind(pod) == ""
        bench.assumed.settle(pod["metadata"]["uid"])
    granted = [grant["spec"]["containers"][0]["shares"][0]["gpu"] for grant in await bench.grants()]
    assert sorted(granted) == ["GPU-0", "GPU-1"]
    assert {gpu: bench.memory(gpu=gpu) for gpu in held} == held, "nothing is counted twice"


async def test_cpu_and_memory_count_from_the_decision_on() -> None:
    """So the packing policy sees decisions whose binds have not been reported. Two nodes, and a pod without a bind."""
    bench = Bench()
    host, size = bench.cluster_state.host, HostSize(4000, 1024)
    for node in NODES:
        bench.offer(node, *gpus(1, prefix=node))
        host.observe_node(node, HostSize(8000, 4096))
    pod = admitted_pod("pod", gpumem=1000)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4", "memory": "1Gi"}
    parsed = bench.parse(await bench.kube.create(PODS, pod))

    def free() -> list[int]:
        return [host.free(node).cpu for node in NODES]

    bench.assumed.assume(parsed, "node-0")
    assert free() == [4000, 8000]
    bench.assumed.confirm(parsed.uid, "node-1")
    assert free() == [8000, 4000]
    bench.assumed.settle(parsed.uid)
    assert free() == [8000, 4000], "until a watch reports it"
    assert host.observe_pod(parsed.uid, "node-1", size)
    bench.clock.time += ASSUMED_S
    bench.assumed.lapse()
    assert free() == [8000, 4000]
    host.remove_pod(parsed.uid)
    bench.assumed.assume(parsed, "node-0")
    bench.assumed.withdraw(parsed.uid)
    assert free() == [8000, 8000], "it is tried again"
    bench.assumed.assume(parsed, "node-0")
    bench.clock.time += ASSUMED_S
    bench.assumed.lapse()
    assert free() == [8000, 8000], "no bind came"


class LostAnswer(FakeKube):
    """The answer to the first grant is lost after it was written."""

    lose = True

    async def create(self, resource: object, obj: Object) -> Object:  # type: ignore[override]
        created = await super().create(resource, obj)  # type: ignore[arg-type]
        if resource == GRANTS and self.lose:
            self.lose = False
            raise Unreachable("the connection was lost")
        return created


async def test_the_hold_of_an_attempt_to_bind_is_left_alone() -> None:
    """It covers a grant that may exist."""
    bench = Bench(LostAnswer())
    bench.offer("node-0", *gpus(1))
    pod = await bench.pod("first", gpumem=20_000)
    uid = pod["metadata"]["uid"]
    bench.assumed.assume(bench.parse(pod), "node-0")
    bench.assumed.confirm(uid, "node-0")
    assert "lost" in await bench.bind(pod)
    bench.assumed.settle(uid)
    assert bench.memory() == 20_000 and bench.assumed.freed_since() is None
    bench.assumed.assume(bench.parse(pod), "node-0")
    bench.assumed.withdraw(uid)
    assert bench.memory() == 20_000
