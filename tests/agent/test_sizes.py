"""The agent applies the sizes that grants give to running containers, whatever it was doing when it died."""

import itertools
from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.containers.paths import folder_name, write_limits
from lamina.agent.limits import container_resizer as module
from lamina.agent.limits.container_resizer import ContainerResizer
from lamina.agent.state.holdings import Bound
from lamina.core.grants import ContainerSize, grant_name
from lamina.core.objects import read_grant, write_spec
from lamina.core.quantities import MIB
from lamina.core.sizes import AppliedSize
from lamina.enforcement import Limits, layout, read_limits
from lamina.enforcement.live_limits import MemoryHeld, resize_container
from lamina.ports.kube import GRANTS
from lamina.ports.nvml import GpuProcess
from tests.agent.node import Node, container, share
from tests.enforcement.gpu_uuids import UUID
from tests.worlds.deaths import Died, Life


class Resized:
    """The container `main` of a running pod with 1000 MiB, and an agent that follows its size."""

    def __init__(self, root: Path) -> None:
        self.node = Node(root)
        self.published: list[tuple[AppliedSize, ...]] = []

    async def begin(self) -> None:
        self.uid = await self.node.pod("p", container("main", structs.replace(share(), gpu=UUID.format(1))))
        self.grant = await self.node.cluster.get_grant("default", "p", self.uid)
        assert self.grant is not None
        name = self.node.allocate("ticket-0")
        bound = Bound(namespace="default", pod="p", pod_uid=self.uid, container="main", grant=self.grant.containers[0])
        self.node.record.bind({name: bound})
        self.folder = self.node.places.containers / folder_name(self.uid, "main")
        self.folder.mkdir(parents=True)
        write_limits(self.folder, self.grant.containers[0], self.grant.containers[0].shares)
        self.start()

    def start(self, life: Life | None = None) -> None:
        self.node.start(life)
        self.follower = ContainerResizer(self.node.context, self.node.owners, self.published.append)
        self.follower.observe(self.uid, "waiting main=1")

    async def size(self, generation: int, memory: int) -> None:
        name = grant_name("p", self.uid)
        obj = await self.node.kube.get(GRANTS, name, namespace="default")
        grant = read_grant(obj)
        size = ContainerSize(generation=generation, memory_mib=memory)
        (main,) = grant.containers
        obj["spec"] = write_spec(structs.replace(grant, containers=(structs.replace(main, size=size),)))
        await self.node.kube.replace(GRANTS, obj)

    def limits(self) -> tuple[int, int]:
        """MiB in the files `limits` and `arbiter`."""
        arbiter = layout.ArbiterFile.from_buffer_copy((self.folder / "arbiter").read_bytes())
        return read_limits(self.folder / "limits").devices[0].memory_bytes // MIB, arbiter.devices[
            0
        ].memory_bytes // MIB

    def remembered(self) -> int:
        (allocation,) = self.node.record.allocations
        assert allocation.bound is not None and allocation.bound.grant is not None
        return allocation.bound.grant.shares[0].memory_mib


@pytest.fixture
async def resized(tmp_path: Path) -> Resized:
    made = Resized(tmp_path)
    await made.begin()
    return made


@pytest.mark.parametrize("memory", [2000, 500])
async def test_a_size_reaches_the_files_the_record_and_the_inventory(resized: Resized, memory: int) -> None:
    await resized.size(1, memory)
    await resized.follower.reconcile()
    assert resized.limits() == (memory, memory) and resized.remembered() == memory
    applied = AppliedSize(pod_uid=resized.uid, container="main", generation=1, memory_mib=memory)
    assert resized.published[-1] == (applied,)


async def test_what_waits_says_why_and_is_tried_again(resized: Resized, monkeypatch: pytest.MonkeyPatch) -> None:
    async def holds(folder: Path, limits: object, ask: object) -> None:
        raise MemoryHeld("it holds 800 MiB")

    await resized.size(1, 500)
    with monkeypatch.context() as patch:
        patch.setattr(module, "resize_container", holds)
        await resized.follower.reconcile()
    assert resized.remembered() == 1000
    (published,) = resized.published[-1]
    assert (published.generation, published.waiting) == (0, "container main: it holds 800 MiB")
    assert (published.held_generation, published.memory_mib) == (1, 1000)
    await resized.follower.reconcile()
    assert resized.limits() == (500, 500) and (
        resized.published[-1][0].generation,
        resized.published[-1][0].held_generation,
    ) == (1, 0)


LIAR = 71
"""The PID of a process of the pod."""


def driver_lists(resized: Resized, *processes: GpuProcess, cgroups: str | None = None) -> None:
    """The driver lists these on the container's GPU; `cgroups` are those of LIAR, by default its pod's."""
    resized.node.nvml.running[UUID.format(1)] = processes
    found = f"0::/kubepods/besteffort/pod{resized.uid}/0123456789ab\n" if cgroups is None else cgroups
    resized.node.host.cgroups[LIAR] = found


def outcome(resized: Resized) -> tuple[int, int, str]:
    """MiB that the container may use and that count, and why it is no less."""
    (published,) = resized.published[-1]
    may, written = resized.limits()
    assert written in (0, may), "0 stands for the file `limits`"
    return may, resized.remembered(), published.waiting


async def test_what_the_driver_lists_is_not_freed_whatever_usage_says(resized: Resized) -> None:
    """`usage` says that it holds nothing: `slots_used` is 0."""
    driver_lists(resized, GpuProcess(LIAR, 501 * MIB))
    await resized.size(1, 500)
    await resized.follower.reconcile()
    why = f"container main: by the driver's figures its processes hold 501 MiB of {UUID.format(1)}, more than 500 MiB"
    assert outcome(resized) == (1000, 1000, why)
    assert resized.published[-1][0].held_generation == 1, "the controller refuses it"
    driver_lists(resized, GpuProcess(LIAR, 500 * MIB))
    await resized.follower.reconcile()
    assert outcome(resized) == (500, 500, "")


@pytest.mark.parametrize(
    ("process", "cgroups"),
    [
        (GpuProcess(LIAR, None), None),  # the driver does not say what it uses
        (GpuProcess(LIAR, 1), ""),  # it is in another PID namespace
        (GpuProcess(LIAR, 1), "0::/system.slice/sshd.service\n"),  # kubelet makes no cgroups here
    ],
)
async def test_nothing_is_freed_where_the_driver_does_not_say_who_holds_what(
    resized: Resized, process: GpuProcess, cgroups: str | None
) -> None:
    driver_lists(resized, process, cgroups=cgroups)
    await resized.size(1, 500)
    await resized.follower.reconcile()
    why = (
        f"container main: the driver does not say how much memory of {UUID.format(1)} its processes hold, so nothing "
        "of it is freed; create the pod again with the smaller size"
    )
    assert outcome(resized) == (1000, 1000, why) and resized.published[-1][0].held_generation == 1


async def test_a_driver_that_does_not_answer_frees_nothing_until_it_does(resized: Resized) -> None:
    resized.node.nvml.broken = "NVML does not tell the processes: Unknown Error"
    await resized.size(1, 500)
    await resized.follower.reconcile()
    assert outcome(resized) == (1000, 1000, f"container main: {resized.node.nvml.broken}")
    resized.node.nvml.broken = ""
    await resized.follower.reconcile()
    assert outcome(resized) == (500, 500, "")


async def test_a_container_that_gets_more_needs_no_figure(resized: Resized) -> None:
    driver_lists(resized, GpuProcess(LIAR, None))
    await resized.size(1, 2000)
    await resized.follower.reconcile()
    assert outcome(resized) == (2000, 2000, "")


async def test_the_driver_is_asked_again_after_the_smaller_limit_is_in_force(
    resized: Resized, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def takes_meanwhile(container: Bound, uuid: str) -> int:
        asked.append(resized.limits()[0])
        return 400 * MIB * len(asked)

    monkeypatch.setattr(resized.node.owners, "memory", takes_meanwhile)
    await resized.size(1, 500)
    await resized.follower.reconcile()
    assert asked == [1000, 500] and outcome(resized)[:2] == (1000, 1000)


async def test_a_size_that_a_dead_agent_has_written_is_asked_about_too(resized: Resized) -> None:
    """The file `limits` has the smaller size already, so the record decides whether something is freed."""
    driver_lists(resized, GpuProcess(LIAR, 900 * MIB))
    await resized.size(1, 500)
    (device,) = read_limits(resized.folder / "limits").devices
    await resize_container(resized.folder, Limits(devices=(device.resized(500 * MIB, 0),)), None)
    resized.start()
    await resized.follower.reconcile()
    assert resized.remembered() == 1000 and resized.published[-1][0].held_generation == 1


async def test_an_annotation_alone_changes_nothing(resized: Resized) -> None:
    resized.follower.observe(resized.uid, "done main=9000")
    await resized.follower.reconcile()
    assert resized.limits()[0] == 1000 and resized.published == []


@pytest.mark.parametrize("memory", [2000, 500])
async def test_an_agent_that_dies_at_any_moment_never_counts_less_than_may_be_used(tmp_path: Path, memory: int) -> None:
    for at in itertools.count():
        resized = Resized(tmp_path / str(at))
        await resized.begin()
        await resized.size(1, memory)
        resized.start(Life(at))
        died = False
        try:
            await resized.follower.reconcile()
        except Died:
            died = True
        resized.start()
        assert resized.remembered() >= max(resized.limits())
        await resized.follower.reconcile()
        assert (resized.limits(), resized.remembered()) == ((memory, memory), memory)
        if not died:
            assert at >= 2
            return
