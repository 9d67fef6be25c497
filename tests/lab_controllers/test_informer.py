"""The parts that all loops stand on: a cache that never goes back in time, a fair queue, and restarts."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from lamina.ports.kube import CONFIG_MAPS, GRANTS, NotFound, Resource
from lamina.ports.kube.fake import FakeKube
from lamina_lab.controllers.framework.kinds import DEPLOYMENTS
from lamina_lab.controllers.run import run
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.supervise import supervise
from lamina_lab.informer.workqueue import WorkQueue
from tests.lab_controllers.cluster import Kubelet, LabInProcess, deployment
from tests.waiting import canceled
from tests.worlds.clocks import SteppedClock, settle

Changes = list[tuple[str | None, str | None]]


def config(name: str = "a", value: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"value": value}}


@pytest.fixture
async def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
async def cache(kube: FakeKube) -> AsyncIterator[Cache]:
    made = Cache(kube, SteppedClock(), [CONFIG_MAPS])
    task = asyncio.create_task(made.run())
    await made.synced()
    yield made
    await canceled(task)


def listen(cache: Cache) -> Changes:
    reported: Changes = []

    def listener(resource: Resource, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        reported.append((before and before["data"]["value"], after and after["data"]["value"]))

    cache.listen(listener)
    return reported


async def test_changes_are_reported_once_and_in_order(kube: FakeKube, cache: Cache) -> None:
    reported = listen(cache)
    await kube.create(CONFIG_MAPS, config())
    await settle()
    await kube.patch(CONFIG_MAPS, "a", {"data": {"value": "2"}}, namespace="default")
    await settle()
    await kube.delete(CONFIG_MAPS, "a", namespace="default")
    await settle()
    assert reported == [(None, "1"), ("1", "2"), ("2", None)]


async def test_an_own_write_is_visible_at_once_and_reported_once(kube: FakeKube, cache: Cache) -> None:
    reported = listen(cache)
    made = await kube.create(CONFIG_MAPS, config())
    cache.note(CONFIG_MAPS, made)
    assert cache.get(CONFIG_MAPS, "default/a") == made
    await settle()
    assert reported == [(None, "1")]


async def test_an_answer_that_comes_after_the_deletion_brings_nothing_back(kube: FakeKube, cache: Cache) -> None:
    await kube.create(CONFIG_MAPS, config())
    answer = await kube.patch(CONFIG_MAPS, "a", {"data": {"value": "2"}}, namespace="default")
    await kube.delete(CONFIG_MAPS, "a", namespace="default")
    await settle()
    cache.note(CONFIG_MAPS, answer)
    assert cache.list(CONFIG_MAPS) == []


async def test_an_accepted_deletion_counts_until_the_watch_says_more(kube: FakeKube, cache: Cache) -> None:
    obj = await kube.create(CONFIG_MAPS, {**config(), "metadata": {**config()["metadata"], "finalizers": ["x/y"]}})
    await settle()
    cache.note_deletion(CONFIG_MAPS, obj, "2027-01-15T08:00:00Z")
    assert cache.list(CONFIG_MAPS)[0]["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in obj["metadata"]
    await kube.patch(CONFIG_MAPS, "a", {"data": {"value": "2"}}, namespace="default")
    await settle()
    assert "deletionTimestamp" not in cache.list(CONFIG_MAPS)[0]["metadata"]


async def test_a_second_run_notices_what_went_away_in_between(kube: FakeKube) -> None:
    await kube.create(CONFIG_MAPS, config("a"))
    await kube.create(CONFIG_MAPS, config("b"))
    cache = Cache(kube, SteppedClock(), [CONFIG_MAPS])
    for _ in range(2):
        task = asyncio.create_task(cache.run())
        await cache.synced()
        await settle()
        await canceled(task)
        if cache.get(CONFIG_MAPS, "default/a"):
            await kube.delete(CONFIG_MAPS, "a", namespace="default")
    assert [each["metadata"]["name"] for each in cache.list(CONFIG_MAPS)] == ["b"]


async def test_optional_collections_are_not_waited_for(kube: FakeKube) -> None:
    def unserved(resource: Resource, name: str) -> NotFound | None:
        return NotFound("no such kind") if resource == GRANTS else None

    kube.failing["list"] = unserved
    cache = Cache(kube, SteppedClock(), [CONFIG_MAPS], optional=[GRANTS])
    task = asyncio.create_task(cache.run())
    await asyncio.wait_for(cache.synced(), 60)
    await canceled(task)


async def test_a_key_is_queued_once_and_held_by_one() -> None:
    queue = WorkQueue(SteppedClock())
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.take(), await queue.take()] == ["a", "b"]
    queue.add("a")
    taker = asyncio.create_task(queue.take())
    await settle()
    assert not taker.done()
    queue.done("b")
    await settle()
    assert not taker.done()
    queue.done("a")
    assert await taker == "a"


async def test_delayed_keys_come_in_time_and_not_before() -> None:
    clock = SteppedClock()
    queue = WorkQueue(clock)
    queue.add_after("late", 10)
    queue.add_after("soon", 2)
    taken: list[str] = []

    async def work() -> None:
        while True:
            key = await queue.take()
            taken.append(key)
            queue.done(key)

    task = asyncio.create_task(work())
    await settle()
    assert taken == []
    await clock.advance(3)
    assert taken == ["soon"]
    queue.add_after("sooner", 1)
    await clock.advance(2)
    assert taken == ["soon", "sooner"]
    await clock.advance(6)
    assert taken == ["soon", "sooner", "late"]
    task.cancel()


async def test_what_breaks_is_started_again_ever_more_slowly(caplog: pytest.LogCaptureFixture) -> None:
    clock = SteppedClock()
    starts: list[float] = []

    async def broken() -> None:
        starts.append(clock.monotonic())
        raise RuntimeError("out of ideas")

    task = asyncio.create_task(supervise("the thinker", broken, clock))
    await settle()
    await clock.advance(100, step=0.1)
    task.cancel()
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps[:4] == pytest.approx([0.2, 0.4, 0.8, 1.6], abs=0.15)
    assert gaps[-1] == pytest.approx(30, abs=0.15)
    assert "the thinker failed" in caplog.text
    assert "out of ideas" in caplog.text


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_busy_loops_end_when_they_are_canceled(turns: int) -> None:
    cluster = LabInProcess()
    await cluster.add_node("n1")
    cluster.run(run(cluster.kube, cluster.clock, node_grace=1e9))
    cluster.run(Kubelet(cluster.api).run())
    await settle()
    await cluster.create(DEPLOYMENTS, deployment(replicas=20))
    await settle(turns)
    await asyncio.wait_for(cluster.stop(), 60)
