"""Pods that fit nowhere are tried again when processes of deleted pods have ended, or a replica begins to lead."""

from pathlib import Path

import msgspec
import pytest

from lamina.controller.scheduling import requeue as requeuing
from lamina.controller.scheduling.requeue import RETRY, Requeue
from lamina.core.claims import HeldClaim
from lamina.core.grants import ContainerGrant, Share
from lamina.core.objects import write_spec
from lamina.core.survivors import Survivor
from lamina.ports.kube import INVENTORIES, PODS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, inventory


def retried(pod: Object) -> str | None:
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    return annotations.get(RETRY)


async def tried(bench: Bench, *names: str, fits: bool = False) -> None:
    """Filter has answered about these pods, one after another."""
    for name in names:
        bench.clock.time += 0.01
        pod = await bench.kube.create(PODS, admitted_pod(name, gpu=1))
        bench.context.pending.observe_try(bench.parse(pod), "" if fits else "memory", bench.clock.monotonic())


async def released(bench: Bench, requeue: Requeue, at: float) -> None:
    """Something has ended that kube-scheduler does not watch."""
    bench.clock.wall_time = at
    bench.ledger.silent_releases += 1
    await requeue.reconcile()


async def values(bench: Bench, *names: str) -> list[str | None]:
    return [retried(await bench.kube.get(PODS, name, namespace="default")) for name in names]


async def test_only_pods_that_the_last_call_refused_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requeuing, "MAX_RETRIES", 2)
    bench = Bench()
    requeue = Requeue(bench.context, bench.assumed, lambda: True)
    await tried(bench, "fits", fits=True)
    await tried(bench, "first", "b", "c")
    await released(bench, requeue, 1)
    assert await values(bench, "fits", "first", "b", "c") == [None, None, "1", "1"], "the first of three gave way"
    await released(bench, requeue, 2)
    assert await values(bench, "first", "b", "c") == ["2", "1", "1"], "each try needs a refusal before it"


async def test_a_pod_that_is_gone_stops_no_other() -> None:
    bench = Bench()
    await tried(bench, "gone", "left")
    await bench.kube.delete(PODS, "gone", namespace="default")
    await released(bench, Requeue(bench.context, bench.assumed, lambda: True), 1)
    assert await values(bench, "left") == ["1"]


async def test_a_replica_that_begins_to_lead_has_all_pending_pods_tried_again() -> None:
    bench = Bench()
    leads = False
    requeue = Requeue(bench.context, bench.assumed, lambda: leads)
    for name in ("first", "second"):
        bench.context.pending.observe(bench.parse(await bench.kube.create(PODS, admitted_pod(name, gpu=1))))
    await requeue.reconcile()
    assert await values(bench, "first", "second") == [None, None], "another replica leads"
    leads = True
    await requeue.reconcile()
    before = await values(bench, "first", "second")
    assert None not in before
    bench.clock.wall_time += 60
    await requeue.reconcile()
    assert await values(bench, "first", "second") == before, "once"
    leads = False
    await requeue.reconcile()
    leads = True
    await requeue.reconcile()
    after = await values(bench, "first", "second")
    assert not set(before) & set(after), "it has lost the lead and leads again"


async def test_a_pod_that_was_bound_meanwhile_is_not_written() -> None:
    bench = Bench()
    requeue = Requeue(bench.context, bench.assumed, lambda: True)
    pod = await bench.kube.create(PODS, admitted_pod("bound", gpu=1))
    bench.context.pending.observe(bench.parse(pod))
    bench.context.pending.forget(pod["metadata"]["uid"])
    await requeue.reconcile()
    assert await values(bench, "bound") == [None]


async def test_pods_are_tried_again_when_a_claim_is_no_longer_prepared() -> None:
    bench = Bench()
    requeue = Requeue(bench.context, bench.assumed, lambda: True)
    request = ContainerGrant(name="gpu", shares=(Share(gpu=inventory().gpus[0].uuid, memory_mib=32000),))
    claims = tuple(HeldClaim(namespace="default", name=name, uid=name, requests=(request,)) for name in "ab")

    async def tried_again_with(*prepared: HeldClaim) -> bool:
        bench.ledger.observe_inventory(msgspec.structs.replace(inventory(), claims=prepared))
        await requeue.reconcile()
        return await values(bench, "waits") != [None]

    await requeue.reconcile()
    await tried(bench, "waits")
    assert not await tried_again_with(*claims)
    assert not await tried_again_with(claims[0], msgspec.structs.replace(claims[1], requests=(request, request)))
    assert await tried_again_with(claims[0])


async def test_pods_are_tried_again_when_a_quota_of_their_namespace_changes() -> None:
    bench = Bench()
    requeue = Requeue(bench.context, bench.assumed, lambda: True)
    quotas = [{"metadata": {"name": "q", "namespace": each}, "spec": {}} for each in ("default", "other")]
    for quota in quotas:
        bench.quotas.observe(quota)
    await requeue.reconcile()
    await tried(bench, "p")
    bench.quotas.observe({**quotas[0], "status": {"used": {}}})
    bench.quotas.observe({**quotas[1], "spec": {"hard": {}}})
    await requeue.reconcile()
    assert await values(bench, "p") == [None], "neither a status nor another namespace says that it fits now"
    bench.quotas.observe({**quotas[0], "spec": {"hard": {"limits.nvidia.com/gpumem": 1}}})
    await requeue.reconcile()
    assert await values(bench, "p") != [None]
    await bench.kube.delete(PODS, "p", namespace="default")
    await tried(bench, "p")
    bench.quotas.remove(quotas[0])
    await requeue.reconcile()
    assert await values(bench, "p") != [None]


async def test_refused_members_are_tried_again_once_a_place_was_found_for_them() -> None:
    bench = Bench()
    requeue = Requeue(bench.context, bench.assumed, lambda: True)
    await requeue.reconcile()
    await tried(bench, "member", "other")
    await tried(bench, "fits", fits=True)
    for pod in bench.context.pending:
        pod.place_found = pod.name in ("member", "fits")
    await requeue.reconcile()
    member, other, fits = await values(bench, "member", "other", "fits")
    assert member is not None and other is None and fits is None


async def test_a_controller_has_pods_tried_again_when_a_survivor_ends(tmp_path: Path) -> None:
    kube = FakeKube()

    async def publish(*survivors: Survivor) -> None:
        spec = write_spec(msgspec.structs.replace(inventory(), survivors=survivors))
        await kube.replace(INVENTORIES, {**await kube.get(INVENTORIES, "node-0"), "spec": spec})

    async with running(kube, tmp_path) as cluster:
        shares = tuple(Share(gpu=gpu.uuid, memory_mib=32000) for gpu in inventory().gpus)
        held = (ContainerGrant(name="main", shares=shares),)
        await publish(Survivor(namespace="default", pod="deleted", pod_uid="deleted", containers=held))
        pod = await cluster.make(admitted_pod("waits", gpu=1, gpumem=5000))

        async def fits() -> bool:
            return (await cluster.scheduler.filter(pod, "node-0"))["nodenames"] == ["node-0"]

        async def tried_again() -> bool:
            return retried(await kube.get(PODS, "waits", namespace="default")) is not None

        await until(lambda: _not(fits()), task=cluster.task)
        await publish()
        await until(tried_again, task=cluster.task)
        assert await fits()


async def _not(answer: object) -> bool:
    return not await answer  # type: ignore[misc]
