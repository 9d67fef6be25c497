"""Unexpected exceptions behind every port, handler and loop of the controller: everything else continues."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.admission.registration import WebhookRegistration
from lamina.config_source import live as live
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.controller import assembly
from lamina.controller.binding.orphan_grants import remove_orphan_grants
from lamina.controller.capacity.host_capacity import HostCapacity
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.leadership.election import LeaderElection
from lamina.controller.leadership.label import LeaderLabel
from lamina.controller.observation import watches
from lamina.controller.packing.free_arrays import FreeArrays
from lamina.controller.packing.policy import PackingPolicy
from lamina.controller.quota_status import update_statuses
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.ledger.ledger import Ledger
from lamina.ledger.quotas import ResourceQuotas
from lamina.placement import NodeState
from lamina.ports.clock import FakeClock
from lamina.ports.kube import (
    CONFIG_MAPS,
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    Object,
)
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import RunningController, running
from tests.controller.trials import EVERY_LOOP_S, set_aside, works
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus, inventory_object, node_object
from tests.worlds.planted import Planted, raising

BAD = "bad"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    """One whose time passes while the test waits for something."""
    async with running(FakeKube(), tmp_path, ("node-0", gpus()), clock=FakeClock()) as made:
        yield made


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "replace", "patch", "delete", "bind"])
async def test_an_exception_behind_a_call_of_the_api_server(cluster: RunningController, verb: str) -> None:
    kube, clock = cluster.kube, cluster.clock
    assert isinstance(kube, FakeKube) and isinstance(clock, FakeClock)
    await works(cluster, "before")
    kube.failing[verb] = lambda resource, name: Planted(f"{verb} {resource.plural} {name}")  # type: ignore[return-value]
    kube.disconnect()
    await clock.advance(EVERY_LOOP_S)
    assert not cluster.task.done()
    del kube.failing[verb]
    await works(cluster, "after")


async def test_an_exception_because_of_one_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of object that is watched: the bad one is set aside, by name and kind, and the others count."""

    def named(obj: Object, *_: Any) -> bool:
        return bool(obj["metadata"]["name"].startswith(BAD))

    def second_named(_: Any, obj: Object, *__: Any) -> bool:
        return named(obj)

    monkeypatch.setattr(watches, "pod_state", raising(named, watches.pod_state))
    monkeypatch.setattr(watches, "offered_by", raising(named, watches.offered_by))
    monkeypatch.setattr(watches, "read_inventory", raising(named, watches.read_inventory))
    monkeypatch.setattr(watches, "grant_record", raising(named, watches.grant_record))
    monkeypatch.setattr(ResourceQuotas, "observe", raising(second_named, ResourceQuotas.observe))
    monkeypatch.setattr(live, "load", raising(lambda text, _: BAD in text, live.load))
    async with running(FakeKube(), tmp_path, ("node-0", gpus())) as cluster:
        kube = cluster.kube
        for resource, obj in (
            (PODS, admitted_pod(BAD)),
            (NODES, node_object(BAD)),
            (INVENTORIES, inventory_object(BAD)),
            (GRANTS, {"metadata": {"name": BAD, "namespace": "default"}}),
            (RESOURCE_QUOTAS, {"metadata": {"name": BAD, "namespace": "default"}}),
            (CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE},
                           "data": {CONFIG_MAP_KEY: f"# {BAD}"}}),
        ):  # fmt: skip
            await kube.create(resource, obj)
        kinds = {"pods", "nodes", "inventories", "grants", "resourcequotas", "configmaps"}

        async def counted() -> bool:
            return kinds <= (await set_aside(cluster)).keys()

        await until(counted, task=cluster.task)
        await works(cluster, "good")
        counts = await set_aside(cluster)
        assert all(counts[kind] == 1 for kind in kinds), counts
        for name, resource in ((BAD, INVENTORIES), (BAD, NODES)):
            await kube.delete(resource, name)
        await works(cluster, "better")


async def test_an_exception_because_of_the_state_of_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = NodeState.of.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(NodeState, "of", classmethod(raising(lambda _, node, *rest: node == BAD, original)))
    async with running(FakeKube(), tmp_path, ("node-0", gpus())) as cluster:
        await cluster.kube.create(NODES, node_object(BAD))
        await cluster.kube.create(INVENTORIES, inventory_object(BAD))

        async def known() -> bool:
            await works(cluster, f"good-{next(numbers)}")
            return "node state" in await set_aside(cluster)

        numbers = itertools.count()
        await until(known, task=cluster.task)
        pod = await cluster.make(admitted_pod("q", gpumem=1000))
        answer = await cluster.scheduler.filter(pod, "node-0", BAD)
        assert answer["nodenames"] == ["node-0"], "nothing is placed on a node whose state is not known"


LOOPS: dict[str, tuple[Any, str]] = {
    "election": (LeaderElection, "try_lead"),
    "leader label": (LeaderLabel, "update"),
    "webhook": (WebhookRegistration, "reconcile"),
    "reservations": (Ledger, "expire"),
    "pod groups": (GangCoordinator, "expire"),
    "orphan grants": (assembly, remove_orphan_grants.__name__),
    "quotas": (assembly, update_statuses.__name__),
}


@pytest.mark.parametrize("loop", LOOPS)
async def test_an_exception_in_a_loop(cluster: RunningController, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    owner, name = LOOPS[loop]
    failures = iter([True, True])
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, raising(lambda *_: next(failures, False), getattr(owner, name)))

        async def counted() -> bool:
            return (await set_aside(cluster)).get("loop", 0) >= 1

        await until(counted, within_s=20, task=cluster.task, clock=cluster.clock, step_s=0.2)
        await until(
            lambda: next(failures, None) is None, within_s=20, task=cluster.task, clock=cluster.clock, step_s=0.2
        )
        await works(cluster, "after")


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (FreeArrays, "refresh"),
        (FreeArrays, "ask"),
        (PackingPolicy, "_compute_levels"),
        (PackingPolicy, "_mix"),
        (HostCapacity, "pop_changed"),
        (HostCapacity, "observe_pod"),
    ],
)
async def test_the_packing_policy_never_stops_placement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str
) -> None:
    monkeypatch.setattr(owner, method, raising(lambda *_: started, getattr(owner, method)))
    started = False
    async with running(FakeKube(), tmp_path, ("node-0", gpus())) as cluster:
        await works(cluster, "before")
        started = True
        numbers = itertools.count()

        async def counted() -> bool:
            await works(cluster, f"during-{next(numbers)}")
            return bool((await set_aside(cluster)).keys() & {"packing policy", "pods"})

        await until(counted, task=cluster.task)
        await works(cluster, "after")
