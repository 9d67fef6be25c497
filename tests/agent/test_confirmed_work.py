"""Whose work on a GPU the driver confirms."""

import mmap
import os
from pathlib import Path

import pytest

from lamina.agent.containers.paths import folder_name
from lamina.agent.limits import driver_reports
from lamina.agent.limits.driver_reports import DRIVERS_OWN, LOOK_S, OLD_S, DriverReports
from lamina.enforcement.driver_figures import UNCONFIRMED, Confirmation
from lamina.ports.host import LinuxHost
from lamina.ports.nvml import GpuProcess, GpuReading
from tests.agent.node import GPU, Node, container

GIB = 1 << 30
PIDS = {"a": 11, "b": 12}


class Pair:
    """The pods `a` and `b` on one GPU, with a process each, and what the driver says of them."""

    def __init__(self, node: Node) -> None:
        self.node, self.uids = node, dict[str, str]()
        self.confirmed = DriverReports(node.context, node.host)

    async def start(self) -> None:
        for number, pod in enumerate(PIDS):
            self.uids[pod] = await self.node.pod(pod, container("main"))
            await self.node.admit(pod, {"main": [f"ticket-{number}"]})
            await self.node.preparer.prepare([f"ticket-{number}"])
            self.node.host.cgroups[PIDS[pod]] = f"0::/kubepods/besteffort/pod{self.uids[pod]}/0123456789ab\n"
        self.node.nvml.running[GPU[0]] = tuple(GpuProcess(pid, 100) for pid in PIDS.values())
        self.node.nvml.working[GPU[0]] = {PIDS["a"]: 0.25}

    def folder(self, pod: str) -> Path:
        return self.node.places.containers / folder_name(self.uids[pod], "main")

    def confirmation(self, pod: str, gpu: int = 0) -> Confirmation:
        return self.confirmed.confirmation(self.folder(pod), GPU[gpu])

    def said(self, pod: str, gpu: int = 0) -> Confirmation:
        """Without when the driver was asked, and whose processes these are."""
        found = self.confirmation(pod, gpu)
        return Confirmation(found.processes, found.work)


@pytest.fixture
async def pair(node: Node) -> Pair:
    made = Pair(node)
    await made.start()
    return made


async def test_nothing_is_confirmed_before_the_driver_was_asked(pair: Pair) -> None:
    assert pair.said("a") == UNCONFIRMED
    await pair.confirmed.reconcile()
    assert pair.said("a", gpu=1) == UNCONFIRMED


async def test_processes_and_their_work_belong_to_the_pod_of_their_cgroup(pair: Pair) -> None:
    await pair.confirmed.reconcile()
    assert (pair.said("a"), pair.said("b")) == (Confirmation(1, 0.25), Confirmation(1, 0.0))


async def test_a_figure_tells_when_the_driver_was_asked_and_for_which_pod_it_is(pair: Pair) -> None:
    await pair.confirmed.reconcile()
    found = pair.confirmation("a")
    assert found.asked_at == int(pair.node.context.clock.monotonic() * 1e9)
    assert found.owner == pair.uids["a"] != pair.confirmation("b").owner


async def test_a_process_that_the_driver_does_not_list_confirms_nothing(pair: Pair) -> None:
    pair.node.nvml.running[GPU[0]] = (GpuProcess(PIDS["b"], 100),)
    await pair.confirmed.reconcile()
    assert pair.said("a") == Confirmation(0, 0.0)


async def test_work_of_no_known_pod_is_that_of_no_container(pair: Pair) -> None:
    pair.node.host.cgroups[PIDS["a"]] = "0::/system.slice/sshd.service\n"
    await pair.confirmed.reconcile()
    assert (pair.said("a"), pair.said("b")) == (Confirmation(0, 0.0), Confirmation(1, 0.0))


async def test_without_cgroups_of_pods_the_mapped_usage_file_tells_whose_a_process_is(pair: Pair) -> None:
    pair.node.host.cgroups.clear()
    pair.node.host.mapped.add((PIDS["a"], pair.folder("a") / "usage"))
    await pair.confirmed.reconcile()
    assert (pair.said("a"), pair.said("b")) == (Confirmation(1, 0.25), Confirmation(0, 0.0))


async def test_a_driver_that_does_not_measure_processes_still_lists_them(pair: Pair) -> None:
    pair.node.nvml.working[GPU[0]] = None
    await pair.confirmed.reconcile()
    assert pair.said("a") == Confirmation(1, None)


async def test_an_answer_that_cannot_be_used_confirms_nothing_and_is_set_aside(pair: Pair) -> None:
    pair.node.nvml.working = None  # type: ignore[assignment]
    await pair.confirmed.reconcile()
    assert pair.said("a") == UNCONFIRMED
    assert pair.node.context.aside.counts == {"work on a GPU": 1}


async def test_memory_is_what_the_driver_lists_for_the_pod(pair: Pair) -> None:
    pids = {21: "a", 22: "b"}
    for pid, pod in pids.items():
        pair.node.host.cgroups[pid] = f"0::/kubepods/pod{pair.uids[pod]}/0123456789ab\n"
    pair.node.nvml.running[GPU[0]] = (GpuProcess(11, 100), GpuProcess(21, 50), GpuProcess(12, 7), GpuProcess(22, None))
    await pair.confirmed.reconcile()
    assert (pair.confirmation("a").memory, pair.confirmation("b").memory) == (150, None)
    pair.node.nvml.running[GPU[0]] = ()
    await pair.confirmed.reconcile()
    assert pair.confirmation("a").memory == 0


@pytest.mark.parametrize(("used", "expected"), [(None, None), (5 * GIB, 5 * GIB - DRIVERS_OWN - 200), (150, 0)])
async def test_what_is_in_use_besides_is_asked_for_where_memory_is_lent(
    pair: Pair, used: int | None, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.node.nvml.read[GPU[0]] = GpuReading(used_bytes=used)
    await pair.confirmed.reconcile()
    assert pair.confirmation("a").unlisted is None, "none of them may borrow"
    monkeypatch.setattr(driver_reports, "_may_borrow", lambda container: True)
    await pair.confirmed.reconcile()
    assert pair.confirmation("a").unlisted == expected


async def test_old_figures_confirm_nothing(pair: Pair) -> None:
    await pair.confirmed.reconcile()
    pair.node.nvml.broken = "NVML does not answer"
    await pair.node.clock.advance(OLD_S)
    await pair.confirmed.reconcile()
    assert pair.said("a") == Confirmation(1, 0.25)
    await pair.node.clock.advance(LOOK_S)
    assert pair.said("a") == UNCONFIRMED


async def test_the_driver_is_not_asked_about_a_gpu_of_one_container(node: Node) -> None:
    alone = DriverReports(node.context, node.host)
    uid = await node.pod("a", container("main"))
    await node.admit("a", {"main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    await alone.reconcile()
    folder = node.places.containers / folder_name(uid, "main")
    assert alone.confirmation(folder, GPU[0]) == UNCONFIRMED


def test_which_files_a_process_has_mapped(tmp_path: Path) -> None:
    for name in ("mapped", "open"):
        (tmp_path / name).write_bytes(bytes(4096))
    with (tmp_path / "mapped").open("r+b") as file, (tmp_path / "open").open("r+b"):
        kept = mmap.mmap(file.fileno(), 4096)
        host = LinuxHost()
        found = [host.has_mapped(os.getpid(), tmp_path / name) for name in ("mapped", "open", "missing")]
        kept.close()
    assert found == [True, False, False]
    assert not host.has_mapped(1 << 30, tmp_path / "mapped")
