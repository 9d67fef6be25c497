"""Objects that come and go while no watch reports them: what the controller read or wrote of them ends with them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina.controller.binding.orphan_grants import remove_orphan_grants
from lamina.dra.names import DRIVER
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.ledger import UNCONFIRMED_S
from lamina.ledger.pod_stages import Stage
from lamina.ports.clock import FakeClock
from lamina.ports.kube import INVENTORIES, NODES, PODS, RESOURCE_CLAIMS, Listing, Object, Resource, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.waiting import canceled, until
from tests.worlds.objects import admitted_pod, gpus, inventory_object, node_object

CPU = 64_000
"""Millicores of the node."""
TRIED_AGAIN_S = 20.0
"""In this time a watch is tried again, and a pod of which no agent says anything has ended."""


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One whose watches have reported a node and were interrupted then, by a server that forgets what happens."""
    kube, clock = FakeKube(), FakeClock()
    bench = Bench(kube, clock=clock)
    await kube.create(NODES, node_object("node-0"))
    await kube.create(INVENTORIES, inventory_object("node-0", *gpus()))
    watching = [asyncio.create_task(run()) for run in (bench.watches.run, bench.watches.run_claims)]
    await until(bench.watches.synced.is_set, clock=clock)
    kube.failing["watch"] = lambda resource, name: Unreachable("down")
    kube.disconnect()
    yield bench
    for task in watching:
        await canceled(task)


async def bound(bench: Bench) -> Object:
    """A pod of which no watch reports anything, with a grant."""
    pod = await bench.pod(gpu=1, gpumem=1000)
    assert await bench.bind(pod) == ""
    assert bench.memory() == 1000
    return pod


async def connect(bench: Bench) -> None:
    """The server is back, and has forgotten what happened."""
    kube = bench.kube
    assert isinstance(kube, FakeKube)
    kube.forget_history()
    kube.failing.clear()
    await bench.clock.advance(TRIED_AGAIN_S)
    bench.ledger.expire(bench.clock.monotonic())


async def test_a_pod_that_is_bound_and_deleted(bench: Bench) -> None:
    pod = await bound(bench)
    await bench.kube.delete(PODS, pod["metadata"]["name"], namespace="default")
    assert await bench.grants() == []
    await connect(bench)
    assert bench.memory() == 0 and not bench.ledger.grants_of(pod["metadata"]["uid"])


async def test_a_pod_that_is_bound_and_stays(bench: Bench) -> None:
    pod = await bound(bench)
    await connect(bench)
    assert bench.memory() == 1000 and bench.ledger.grants_of(pod["metadata"]["uid"])


def held(bench: Bench) -> list[object]:
    """What is left of pods in what watches and reads feed."""
    host, watches = bench.cluster_state.host, bench.watches
    parts = bench.memory(), host.free("node-0").cpu - CPU, watches.ticket_holders, list(bench.context.pending)
    return [part for part in parts if part]


async def bound_elsewhere(bench: Bench) -> None:
    """A pod of which no watch reports anything, with a grant of another replica."""
    other = Bench(bench.kube, clock=bench.clock, name="other")
    other.offer("node-0", *gpus())
    pod = admitted_pod(gpu=1, gpumem=1000)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    assert await other.bind(await bench.kube.create(PODS, pod)) == ""


@pytest.mark.parametrize("scope", ["node", "namespace"])
async def test_a_pod_that_another_replica_has_bound(bench: Bench, scope: str) -> None:
    """It is read for a turn on its node, or in its namespace."""
    await bound_elsewhere(bench)
    await (bench.watches.catch_up("node-0") if scope == "node" else bench.watches.catch_up_namespace("default"))
    assert len(held(bench)) == 3
    await bench.kube.delete(PODS, "pod", namespace="default")
    await connect(bench)
    assert held(bench) == []


async def test_an_answer_that_comes_after_all_was_reported(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bound_elsewhere(bench)
    asked, gone, read = asyncio.Event(), asyncio.Event(), bench.kube.list

    async def late(resource: Resource, **chosen: Any) -> Listing:
        found = await read(resource, **chosen)
        if chosen.get("fields"):
            asked.set()
            await gone.wait()
        return found

    monkeypatch.setattr(bench.kube, "list", late)
    catching_up = asyncio.create_task(bench.watches.catch_up("node-0"))
    await asked.wait()
    await bench.kube.delete(PODS, "pod", namespace="default")
    await connect(bench)
    gone.set()
    await catching_up
    assert held(bench) == []


async def test_a_pod_whose_grant_is_settled(bench: Bench) -> None:
    """A grant whose pod no watch has reported: the pod is read, and then it goes."""
    await bound_elsewhere(bench)
    (grant,) = await bench.grants()
    bench.ledger.observe_grant(grant_record(grant))
    for _ in range(2):
        await remove_orphan_grants(bench.context, bench.locks)
        await bench.clock.advance(UNCONFIRMED_S)
    assert bench.memory() == 1000 and bench.ledger.pod(grant["spec"]["podUID"]).stage is Stage.BOUND
    await bench.kube.delete(PODS, "pod", namespace="default")
    await connect(bench)
    assert held(bench) == []


async def test_a_claim_that_is_read_before_a_bind(bench: Bench) -> None:
    device = {"request": "one", "device": "gpu-0", "pool": "node-0", "driver": DRIVER}
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"devices": {"requests": []}}}
    claim["status"] = {"allocation": {"devices": {"results": [device]}}}
    await bench.kube.create(RESOURCE_CLAIMS, claim)
    pod = admitted_pod("both", gpu=1, gpumem=1000)
    pod["spec"]["resourceClaims"] = [{"name": "entry", "resourceClaimName": "c"}]
    assert await bench.bind(await bench.kube.create(PODS, pod)) == ""
    assert [each.name for each in bench.cluster_state.claims] == ["c"]
    await bench.kube.delete(RESOURCE_CLAIMS, "c", namespace="default")
    await connect(bench)
    assert not list(bench.cluster_state.claims)
