"""The accounts of a node: what is counted, journaled and served, over restarts and failures."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from lamina.agent.containers.paths import write_limits
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.metrics.accountant import Accountant, AccountJournal, usage_samples
from lamina.agent.metrics.collection import NodeReader
from lamina.agent.metrics.families import account_families, history_families, idle_family
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.observed import PodOwners
from lamina.configuration import DEFAULT
from lamina.core.grants import ComputePolicy
from lamina.core.workloads import Workload
from lamina.dialects.samples import ShareSample
from lamina.enforcement import layout
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.host import FakeHost
from tests.agent.node import FACTS, GPU, Node, container, node_offer, pod_watch, share


class FullDisk(Files):
    full = False

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        if self.full and path.name == "accounts.json":
            raise Outside("no space left on device")
        super().write(path, content, mode=mode)


class Counted:
    """A node and its accountant. `start` is a restart of the agent."""

    def __init__(self, root: Path) -> None:
        self.node = Node(root)
        self.node.preparer = self.node.ticket_preparer(write_limits)
        self.files = FullDisk()
        self.owners = PodOwners()
        self.offer = node_offer(ticket_kinds=ticket_kinds(DEFAULT))
        self.offer.update(driver="1", observed=tuple(ObservedGpu(facts) for facts in FACTS))
        self.start()

    def start(self) -> None:
        context = replace(self.node.context, files=self.files)
        reader = NodeReader(context, self.offer, FakeHost())
        self.accountant = Accountant(context, self.offer, reader, self.owners)

    async def runs(self, pod: str, policy: ComputePolicy = ComputePolicy.WEIGHT) -> None:
        half = share(0, FACTS[0].memory_mib // 2, cores=25 if policy is not ComputePolicy.NONE else 0)
        uid = await self.node.pod(pod, container("main", structs.replace(half, compute_policy=policy)))  # type: ignore
        await self.node.admit(pod, {"main": ["ticket-" + pod]})
        await self.node.preparer.prepare(["ticket-" + pod])
        self.owners.observe(uid, self.owners.owner_of({"metadata": {"name": pod}}))

    async def passes(self, seconds: float) -> None:
        await self.node.clock.advance(seconds)
        await self.accountant.reconcile()

    def series(self, *containing: str) -> dict[tuple[str, frozenset[str]], float]:
        class Served(Collector):
            def collect(_) -> Any:
                return account_families("node-1", self.accountant.written.book)

        registry = CollectorRegistry()
        registry.register(Served())
        families = text_string_to_metric_families(generate_latest(registry).decode())
        found = {(s.name, frozenset(s.labels.values())): s.value for family in families for s in family.samples}
        return {key: value for key, value in found.items() if set(containing) <= key[1]}

    def value(self, *containing: str, name: str = "lamina_workload_gpu_seconds_total") -> float:
        [found] = [value for (each, _), value in self.series(*containing).items() if each == name]
        return found


@pytest.fixture
async def counted(tmp_path: Path) -> Counted:
    counted = Counted(tmp_path)
    await counted.runs("web")
    await counted.accountant.reconcile()
    return counted


async def test_compute_that_is_not_measured_is_a_gap_and_no_zero(tmp_path: Path) -> None:
    """As of a MIG device, or a GPU that is shared by time alone."""
    counted = Counted(tmp_path)
    await counted.runs("web", ComputePolicy.NONE)
    await counted.accountant.reconcile()
    await counted.passes(20)
    assert counted.value("compute", "requested") > 0 and counted.value("compute", "observed") == 0
    assert not counted.series("compute", "used") and not counted.series("compute", "lent")
    assert counted.value("memory", "used") == 0, "its memory is known"


async def test_what_a_workload_holds_is_served(counted: Counted) -> None:
    await counted.passes(20)
    assert counted.value("default", "Pod", "web", "memory", "requested") == 10
    assert counted.value("default", "Pod", "web", "compute", "requested") == 5
    assert counted.value("default", "web", "compute", "lent") == 5
    gib = FACTS[0].memory_mib / 1024  # type: ignore[operator]
    assert counted.value("web", "requested", name="lamina_workload_memory_gibibyte_seconds_total") == 10 * gib
    assert counted.value("memory", "capacity", name="lamina_gpu_seconds_total") == 80
    assert counted.value("memory", "idle", name="lamina_gpu_seconds_total") == 70


async def test_counters_go_on_after_a_restart(counted: Counted) -> None:
    await counted.passes(20)
    counted.start()
    assert counted.value("web", "memory", "requested") == 10
    await counted.passes(4)
    assert counted.value("web", "memory", "requested") == 12, "the time of the restart counts"
    await counted.passes(6)
    assert counted.value("web", "memory", "requested") == 15


async def test_what_is_not_on_disk_is_not_served(counted: Counted) -> None:
    await counted.passes(20)
    counted.files.full = True
    with pytest.raises(Outside, match="no space left"):
        await counted.passes(20)
    assert counted.value("web", "memory", "requested") == 10
    counted.files.full = False
    await counted.passes(20)
    assert counted.value("web", "memory", "requested") == 30


async def test_what_containers_used_and_when_is_served(counted: Counted) -> None:
    await counted.passes(20)
    await counted.passes(20)
    written = counted.accountant.written
    [history] = written.histories
    assert history.key == ("default", "Pod", "web", "main") and history.compute_percent(0.99) == 5
    [peak, *_] = history_families("node-1", written.histories)
    assert [sample.labels["workload"] for sample in peak.samples] == ["web"]
    [counter] = written.book.busy
    share = sample("main", 1, namespace="default", pod="web", pod_uid=counter.pod_uid)
    [idle] = idle_family("node-1", [share], written.book.busy, counted.node.clock.wall()).samples
    assert idle.value == 40 and idle.labels == {"node": "node-1", "namespace": "default", "pod": "web", "gpu": GPU[0]}
    assert not idle_family("node-1", [], written.book.busy, 0).samples, "a pod that is gone"


async def test_a_pod_without_a_share_of_time_is_idle_when_it_was_asked_and_launched_nothing(tmp_path: Path) -> None:
    """The facade does not measure its launches. It says when it is asked that there was one."""
    counted = Counted(tmp_path)
    await counted.runs("memory-alone", ComputePolicy.NONE)
    await counted.passes(20)
    [begun] = counted.accountant.written.book.busy
    for _ in range(3):
        await counted.passes(20)
    written = counted.accountant.written
    [idle] = written.book.busy
    assert idle.changed_at == begun.changed_at, "no process has begun"
    assert written.histories[0].compute_percent(0.99) is None
    assert counted.value("memory-alone", "memory", "requested") > 0
    said(counted, used_at_s=7)
    await counted.passes(20)
    [used] = counted.accountant.written.book.busy
    assert used.changed_at == counted.node.clock.wall()
    said(counted, used_at_s=0)
    await counted.passes(20)
    assert counted.accountant.written.book.busy == (), "a process of an earlier facade says nothing"


def said(counted: Counted, *, used_at_s: int) -> None:
    """A process of the container has begun, and says when it used the GPU."""
    [folder] = counted.node.places.containers.iterdir()
    at = layout.UsageFile.devices.offset + layout.UsageDevice.compute.offset + layout.UsageCompute.used_at.offset
    with (folder / "usage").open("r+b") as file:
        file.seek(layout.UsageFile.slots_used.offset)
        file.write((1).to_bytes(4, "little"))
        file.seek(at)
        file.write((used_at_s * 10**9).to_bytes(8, "little"))


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"\xff", b'{"version": 2, "book": {}}', b'{"version": 1, "book": {"at": "now"}}']
)
async def test_accounts_that_cannot_be_used_begin_at_zero(
    counted: Counted, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await counted.passes(20)
    (counted.node.root / "accounts.json").write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        counted.start()
    assert "begin at zero" in caplog.text and counted.series() == {}
    await counted.passes(20)
    await counted.passes(20)
    assert counted.value("web", "memory", "requested") == 10


async def test_all_that_the_book_knows_is_on_disk(counted: Counted) -> None:
    await counted.passes(20)
    on_disk = AccountJournal(counted.node.root / "accounts.json", Files()).read()
    assert on_disk == counted.accountant.written and on_disk.histories
    assert on_disk.book.accounts and on_disk.book.busy and on_disk.book.workloads


async def test_the_watch_of_pods_knows_owners(counted: Counted) -> None:
    watch = pod_watch(counted.node, counted.owners)
    meta = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    owned = meta | {"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]}
    assert watch._trim({"metadata": owned})["owner"].workload == Workload("Job", "train")
    assert watch._trim({"metadata": meta | {"ownerReferences": "odd"}})["owner"].workload == Workload("", "")


def sample(name: str, limit: int, **changes: Any) -> ShareSample:
    fields: dict[str, Any] = {"node": "n", "namespace": "a", "pod": "p", "pod_uid": "u", "gpu": GPU[0], "place": 0}
    return ShareSample(**fields | {"container": name, "enforcer": "facade", "limit": limit} | changes)


def test_containers_that_run_together_are_added_and_init_containers_are_not() -> None:
    together = [sample("x", 30, cores_percent=10), sample("y", 20, cores_percent=5)]
    [found] = usage_samples([*together, sample("first", 40, init=True, cores_percent=60)], {}, PodOwners())
    assert (found.memory_bytes, found.cores) == (50, 60)
    assert found.busy_s == {"x": 0.0, "y": 0.0, "first": 0.0}


def test_time_is_unknown_where_one_container_of_the_pod_has_no_share_of_it() -> None:
    [found] = usage_samples([sample("x", 30, cores_percent=10), sample("y", 20, busy_is_whole=False)], {}, PodOwners())
    assert (found.memory_bytes, found.busy_s, found.busy_percent) == (50, None, None)


def test_use_is_unknown_where_a_container_shares_by_time_alone() -> None:
    [found] = usage_samples([sample("x", 30, enforcer="none", busy_s=None, held={})], {}, PodOwners())
    assert (found.used_bytes, found.busy_s, found.busy_percent) == (None, None, None)
    [whole] = usage_samples([sample("x", 30, enforcer="whole", busy_percent=40.0, held={"data": 7})], {}, PodOwners())
    assert (whole.used_bytes, whole.busy_s, whole.busy_percent) == (7, None, 40.0)
