"""Watches that have reported own writes spare reading nodes, and never a GPU is given away twice for it."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lamina.controller.observation.write_barrier import WriteBarrier
from lamina.ports.clock import FakeClock
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, Object, Resource, Watched
from tests.controller.binders import Bench
from tests.controller.bound_pods import StartingKube
from tests.worlds.objects import admitted_pod, inventory_object

NODES = ("node-0", "node-1")


class DelayedWatches(StartingKube):
    """One API server for several replicas; each gets a report of a grant or a pod when it may."""

    def __init__(self, server: StartingKube, *, reports: int = 0) -> None:
        self.__dict__.update(server.__dict__)
        self.calls = []
        self.may_report = {resource: asyncio.Semaphore(reports) for resource in (GRANTS, PODS)}

    async def watch(
        self, resource: Resource, version: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Watched]:
        async for event in super().watch(resource, version, namespace=namespace, labels=labels, fields=fields):
            if resource in self.may_report:
                await self.may_report[resource].acquire()
            yield event

    def reads_of_nodes(self) -> int:
        return sum(call[:2] == ("list", PODS) for call in self.calls)


@asynccontextmanager
async def replica(kube: DelayedWatches, name: str) -> AsyncIterator[Bench]:
    bench = Bench(kube, clock=FakeClock(), name=name)
    task = asyncio.create_task(bench.watches.run())
    await bench.watches.synced.wait()
    kube.calls.clear()
    yield bench
    task.cancel()


async def server_with(pods: int) -> tuple[StartingKube, list[Object]]:
    server = StartingKube()
    for node in NODES:
        await server.create(INVENTORIES, inventory_object(node))
    return server, [await server.create(PODS, admitted_pod(f"p{number}", gpu=1)) for number in range(pods)]


def write(writes: WriteBarrier, resource: Resource, *, epoch: int, order: str = "sr") -> None:
    writes.begin(resource, "default/p", epoch)
    for step in order:
        (writes.succeeded if step == "s" else writes.report)(resource, "default/p", "written")


@pytest.mark.parametrize("order", ["sr", "rs"])
def test_an_epoch_is_reached_when_a_grant_and_a_binding_of_it_are_reported(order: str) -> None:
    writes = WriteBarrier()
    write(writes, GRANTS, epoch=2, order=order)
    assert not writes.reached(2)
    write(writes, PODS, epoch=2, order=order)
    assert writes.reached(2) and not writes.reached(3)


@pytest.mark.parametrize("order", ["", "s", "r"])
def test_a_write_counts_once_it_has_succeeded_and_was_reported(order: str) -> None:
    writes = WriteBarrier()
    write(writes, GRANTS, epoch=1)
    write(writes, PODS, epoch=1, order=order)
    assert not writes.reached(1)


def test_reports_of_other_writes_do_not_count() -> None:
    writes = WriteBarrier()
    write(writes, GRANTS, epoch=1)
    writes.report(PODS, "default/p", "written")
    writes.begin(PODS, "default/p", 1)
    writes.succeeded(PODS, "default/p", "written")
    writes.report(PODS, "default/other", "written")
    writes.report(PODS, "default/p", "earlier")
    assert not writes.reached(1)


async def test_after_the_reports_of_a_grant_and_a_binding_other_nodes_are_not_read() -> None:
    server, pods = await server_with(3)
    kube = DelayedWatches(server, reports=1000)
    async with replica(kube, "one") as one:
        for pod in pods[:2]:  # the first grant is written before the first epoch begins
            assert await one.bind(pod, NODES[0]) == ""
            await one.clock.advance(0)
        assert await one.bind(pods[2], NODES[1]) == ""
        assert kube.reads_of_nodes() == 1


async def test_without_reports_each_node_is_read() -> None:
    server, pods = await server_with(3)
    kube = DelayedWatches(server)
    async with replica(kube, "one") as one:
        for pod, node in zip(pods, (*NODES, NODES[1]), strict=True):
            assert await one.bind(pod, node) == ""
        assert kube.reads_of_nodes() == 2


async def test_who_loses_the_turn_waits_for_reports_of_later_writes() -> None:
    server, pods = await server_with(4)
    first, second = DelayedWatches(server, reports=1000), DelayedWatches(server, reports=1000)
    async with replica(first, "one") as one, replica(second, "two") as two:
        assert await one.bind(pods[0], NODES[0]) == ""
        first.may_report = {resource: asyncio.Semaphore(0) for resource in (GRANTS, PODS)}
        assert await two.bind(pods[1], NODES[1]) == ""
        reads = first.reads_of_nodes()
        assert "not idle" in await one.bind(pods[2], NODES[1])  # it learns of the other one's grant
        assert await one.bind(pods[2], NODES[1]) == ""
        assert first.reads_of_nodes() > reads


@pytest.mark.parametrize("seed", range(12))
async def test_two_leaders_with_delayed_watches_never_give_a_gpu_away_twice(seed: int) -> None:
    draw = random.Random(seed)
    server, pods = await server_with(8)
    kubes = [DelayedWatches(server), DelayedWatches(server)]
    async with replica(kubes[0], "one") as one, replica(kubes[1], "two") as two:
        for _ in range(40):
            by = draw.choice((one, two))
            if draw.random() < 0.4:
                await asyncio.gather(
                    *(by.bind(draw.choice(pods), draw.choice(NODES)) for by in draw.choices((one, two), k=3))
                )
            for _ in range(draw.randrange(6)):
                draw.choice(kubes).may_report[draw.choice((GRANTS, PODS))].release()
            await by.clock.advance(draw.choice((0, 0, 30)))
        held = [gpu for taken in server.runs_with.values() for gpu in taken]
        bound = [pod for pod in server.pods().values() if pod["spec"].get("nodeName")]
        nodes = [(pod["spec"]["nodeName"], gpu) for pod in bound for gpu in server.runs_with[pod["metadata"]["uid"]]]
        assert bound and len(held) == len(bound)
        assert len(nodes) == len(set(nodes)) <= 4
