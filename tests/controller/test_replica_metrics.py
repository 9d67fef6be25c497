"""What one replica says about itself: whether it leads, its configuration, its certificates, and pods that wait."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lamina import __version__
from lamina.admission import certificates
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT
from lamina.controller.metrics import Metrics
from lamina.controller.pending_pods import RefusedPods
from lamina.controller.replica_metrics import ReplicaMetrics, ReplicaState
from lamina.ledger.ledger import Ledger
from lamina.ports.kube import LEASES, PODS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.set_aside import SetAside
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, inventory

Series = Mapping[tuple[str, *tuple[str, ...]], float]
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def parsed(page: str) -> Series:
    """By name and sorted label values."""
    families = text_string_to_metric_families(page)
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


def served(state: ReplicaState) -> Series:
    registry = CollectorRegistry()
    registry.register(ReplicaMetrics(lambda: state))
    return parsed(generate_latest(registry).decode())


async def page(cluster: RunningController) -> Series:
    async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
        return parsed(await response.text())


def test_a_replica_that_does_nothing_has_its_series() -> None:
    names = ("lamina_leading", "lamina_leader_transitions_total", "lamina_configuration_refused")
    assert served(ReplicaState()) == {(name,): 0.0 for name in names}


def test_the_end_of_a_certificate_is_a_time_and_one_that_cannot_be_read_has_ended() -> None:
    made = certificates.create(["localhost"], NOW)
    found = served(ReplicaState(certificates={"admission": made.certificate, "extender": b"nonsense"}))
    assert found["lamina_certificate_expiry_timestamp_seconds", "admission"] == (
        (NOW + timedelta(days=365)).timestamp()
    )
    assert found["lamina_certificate_expiry_timestamp_seconds", "extender"] == 0


def test_unplaced_pods_have_a_count_and_the_longest_wait() -> None:
    found = served(ReplicaState(pending={("team", "memory"): RefusedPods(3, 60.0)}))
    assert found["lamina_pods_pending", "memory", "team"] == 3
    assert found["lamina_pods_pending_longest_seconds", "memory", "team"] == 60


@pytest.mark.parametrize("leads", [True, False])
def test_only_the_leader_serves_what_is_granted(leads: bool) -> None:
    ledger = Ledger()
    ledger.observe_inventory(inventory())
    metrics = Metrics(ledger, SetAside(logging.getLogger(__name__)), leading=lambda: leads)
    found = parsed(generate_latest(metrics.registry).decode())
    assert any(name.startswith("lamina_gpu_memory_capacity") for name, *_ in found) == leads


def test_a_refused_text_stays_refused_until_one_is_in_force() -> None:
    configuration = LiveConfiguration(DEFAULT, "")
    for text, refused in (
        ("sharing: 7", True),
        ("sharing: 7", True),
        ("compatibility: {metrics: []}", False),
        ("x: 1", True),
    ):
        configuration.update(text, "test")
        assert bool(configuration.refusal) == refused, text


async def test_a_controller_serves_its_own_state(tmp_path: Path) -> None:
    kube = FakeKube()
    async with running(kube, tmp_path) as cluster:
        pod = await cluster.make(admitted_pod("waits", gpu=1, gpumem=99_000))
        await cluster.scheduler.filter(pod, "node-0")
        odd = await cluster.make(admitted_pod("odd", gpu=1, gpumem="much"))
        await cluster.scheduler.filter(odd, "node-0")
        found = await page(cluster)
        assert found["lamina_build_info", __version__] == 1
        assert found["lamina_leading",] == 1
        assert found["lamina_pods_pending", "default", "refused"] == 1
        assert found["lamina_pods_pending", "default", "size"] == 1
        assert found["lamina_certificate_expiry_timestamp_seconds", "admission"] > NOW.timestamp() - 10 * 365 * 86400
        lease = await kube.get(LEASES, "lamina-controller", namespace="lamina-system")
        lease["spec"]["leaseTransitions"] = 4
        await kube.replace(LEASES, lease)
        await kube.delete(PODS, "waits", namespace="default")

        async def settled() -> bool:
            found = await page(cluster)
            pending = ("lamina_pods_pending", "default", "size") in found
            return not pending and found["lamina_leader_transitions_total",] == 4

        await until(settled, task=cluster.task)
