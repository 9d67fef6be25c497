"""Pods that take tickets without a grant are named and ended, and no others are."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.configuration import DEFAULT
from lamina.core.gpus import Inventory, NativeResource
from lamina.ledger.pods import parse_pod
from lamina.ledger.ticket_holders import ticket_holder, without_grant
from lamina.ports.clock import FakeClock
from lamina.ports.kube import EVENTS, GRANTS, PODS, NotFound, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpu_pod, gpus, inventory

IGNORED = {"lamina.dev/webhook": "ignore"}
SCHEDULERS = ("", "mine", "hami-scheduler", "volcano", "kai-scheduler", "default-scheduler")


def on_node(name: str = "culprit", *, scheduler: str = "", labels: dict[str, str] | None = None, **more: Any) -> Object:
    pod = gpu_pod(name, scheduler=scheduler, gpu=10)
    pod["metadata"] |= {"labels": labels or {}, **more}
    pod["spec"]["nodeName"] = "node-0"
    return pod


def holds(pod: Object, node: Inventory | None = None, *, granted: bool = False) -> dict[str, int]:
    holder = ticket_holder(parse_pod(pod, DEFAULT))
    assert holder is not None
    return dict(without_grant(holder, node or inventory(), lambda uid: granted))


@pytest.mark.parametrize(
    ("scheduler", "labels"), [*itertools.product(SCHEDULERS, ({}, IGNORED, {"any": "label"}))]
)  # fmt: skip
def test_of_any_scheduler_and_with_any_labels_a_pod_without_a_grant_has_tickets(
    scheduler: str, labels: dict[str, str]
) -> None:
    pod = on_node(scheduler=scheduler, labels=labels)
    assert holds(pod) == {"nvidia.com/gpu": 10}
    assert holds(pod, granted=True) == {}


@pytest.mark.parametrize("ticket", ["nvidia.com/gpu", "volcano.sh/vgpu-number", "volcano.sh/gpu-mem.128Mi"])
@pytest.mark.parametrize("field", ["containers", "initContainers", "sidecar"])
def test_every_kind_of_tickets_in_every_kind_of_container_counts_as_kube_scheduler_counts(
    ticket: str, field: str
) -> None:
    pod = on_node()
    asks = {"name": "main", "resources": {"limits": {ticket: "3"}, "requests": {ticket: "3"}}}
    more = {
        "name": "more",
        **({"restartPolicy": "Always"} if field == "sidecar" else {}),
        "resources": asks["resources"],
    }
    pod["spec"] |= {"containers": [asks], "initContainers": [] if field == "containers" else [more]}
    assert holds(pod) == {ticket: 6 if field == "sidecar" else 3}


def test_a_pod_that_cannot_be_read_has_its_tickets_too() -> None:
    pod = on_node()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "10", "nvidia.com/gpumem": "much"}
    assert parse_pod(pod, DEFAULT).problem
    assert holds(pod) == {"nvidia.com/gpu": 10}


def test_native_devices_and_nodes_without_shares_are_not_about_tickets() -> None:
    native = Inventory(node="node-0", gpus=gpus(1), native_resources=(NativeResource("nvidia.com/gpu", 4),))
    assert holds(on_node(), native) == {}
    assert holds(on_node(), Inventory(node="node-0")) == {}
    holder = ticket_holder(parse_pod(on_node(), DEFAULT))
    assert holder is not None and without_grant(holder, None, lambda uid: False) == {}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_waits_has_ended_or_requests_none_has_no_tickets(phase: str) -> None:
    for pod in (
        gpu_pod(gpu=1),
        on_node() | {"status": {"phase": phase}},
        {**gpu_pod(), "spec": {"nodeName": "node-0"}},
    ):
        assert ticket_holder(parse_pod(pod, DEFAULT)) is None


async def events(kube: FakeKube, name: str) -> list[str]:
    return [each["reason"] for each in (await kube.list(EVENTS)).items if each["involvedObject"]["name"] == name]


async def exists(kube: FakeKube, name: str) -> bool:
    try:
        return bool(await kube.get(PODS, name, namespace="default"))
    except NotFound:
        return False


async def passes(cluster: RunningController, seconds: float) -> None:
    """Time, in steps in which every loop looks."""
    assert isinstance(cluster.clock, FakeClock)
    for _ in range(int(seconds / 5)):
        await cluster.clock.advance(5.0)


async def page(cluster: RunningController) -> dict[str, float]:
    async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
        families = list(text_string_to_metric_families(await response.text()))
    samples = [sample for family in families for sample in family.samples]
    return {one.labels["namespace"]: one.value for one in samples if one.name == "lamina_pods_without_grant"}


async def test_it_is_named_after_a_minute_and_evicted_after_the_time_of_the_configuration(tmp_path: Path) -> None:
    kube, clock = FakeKube(), FakeClock()
    async with running(kube, tmp_path, ("node-0", gpus(1)), clock=clock) as cluster:
        await kube.create(PODS, on_node(labels=IGNORED))
        honest = await kube.create(PODS, admitted_pod("honest", gpu=1, gpumem=1000))
        assert await cluster.scheduler.bind(honest, "node-0") == ""
        await passes(cluster, 50)
        assert await events(kube, "culprit") == [] and await page(cluster) == {}
        await until(lambda: events(kube, "culprit"), task=cluster.task, clock=clock, step_s=1)
        assert await page(cluster) == {"default": 1}
        assert await exists(kube, "culprit")
        await passes(cluster, 200)
        assert await exists(kube, "culprit")
        await passes(cluster, 60)
        await until(lambda: _gone(kube, "culprit"), task=cluster.task, clock=clock)
        assert await events(kube, "culprit") == ["NoGrant", "Evicted"]
        assert await exists(kube, "honest") and await events(kube, "honest") == []
        await passes(cluster, 10)
        assert await page(cluster) == {}


async def _gone(kube: FakeKube, name: str) -> bool:
    return not await exists(kube, name)


async def test_who_may_not_be_evicted_is_named_and_stays(tmp_path: Path) -> None:
    kube, clock = FakeKube(), FakeClock()
    started = [{"name": "main", "state": {"running": {}}}]
    async with running(kube, tmp_path, ("node-0", gpus(1)), clock=clock) as cluster:
        await kube.create(PODS, on_node("started") | {"status": {"phase": "Running", "containerStatuses": started}})
        await kube.create(PODS, on_node("static", annotations={"kubernetes.io/config.mirror": "x"}))
        await passes(cluster, 600)
        for name in ("started", "static"):
            await until(lambda name=name: events(kube, name), task=cluster.task, clock=clock)
            assert await exists(kube, name)
        assert await events(kube, "started") == await events(kube, "static") == ["NoGrant"]


@pytest.mark.parametrize(
    "settings", ["seconds: 0", "exempt: [default]", "exempt: ['*']"]
)  # fmt: skip
async def test_the_configuration_may_let_them_stay(tmp_path: Path, settings: str) -> None:
    kube, clock = FakeKube(), FakeClock()
    config = tmp_path / "lamina.yaml"
    header = "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
    config.write_text(f"{header}grantlessPods: {{{settings}}}\n")
    async with running(kube, tmp_path, ("node-0", gpus(1)), clock=clock, config=config) as cluster:
        await kube.create(PODS, on_node())
        await passes(cluster, 900)
        await until(lambda: events(kube, "culprit"), task=cluster.task, clock=clock)
        assert await exists(kube, "culprit") and await events(kube, "culprit") == ["NoGrant"]


async def test_a_pod_whose_grant_was_deleted_before_it_started_is_one_of_them(tmp_path: Path) -> None:
    """A replica that never observed the grant cannot know what was in it."""
    kube, clock = FakeKube(), FakeClock()
    async with running(kube, tmp_path, ("node-0", gpus(1)), clock=clock) as cluster:
        pod = await kube.create(PODS, admitted_pod("p", gpu=1))
        assert await cluster.scheduler.bind(pod, "node-0") == ""
    (grant,) = (await kube.list(GRANTS)).items
    await kube.delete(GRANTS, grant["metadata"]["name"], namespace="default")
    second = tmp_path / "second"
    second.mkdir()
    async with running(kube, second, ("node-1", gpus(1)), clock=clock) as cluster:
        await passes(cluster, 400)
        await until(lambda: _gone(kube, "p"), task=cluster.task, clock=clock)
