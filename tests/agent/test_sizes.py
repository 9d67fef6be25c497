"""The agent applies the sizes that grants give to running containers, whatever it was doing when it died."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.containers.limit_files import write_limits
from lamina.agent.containers.paths import folder_name
from lamina.agent.limits import sizes as module
from lamina.agent.limits.sizes import SizeFollower
from lamina.agent.state.record import Bound
from lamina.api.v1alpha1.conversion import read_grant, write_grant
from lamina.enforcement import layout, read_limits
from lamina.enforcement.live_limits import MemoryHeld
from lamina.model.grants import ContainerSize, grant_name
from lamina.model.quantities import MIB
from lamina.model.sizes import AppliedSize
from lamina.ports.kube import GRANTS
from tests.agent.dying_files import Died, DyingFiles
from tests.agent.node import Node, container, share
from tests.enforcement.gpu_uuids import UUID


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

    def start(self, files: Any = None) -> None:
        self.node.start(files)
        self.follower = SizeFollower(self.node.context, self.published.append)
        self.follower.observe(self.uid, "waiting main=1")

    async def size(self, generation: int, memory: int) -> None:
        name = grant_name("p", self.uid)
        obj = await self.node.kube.get(GRANTS, name, namespace="default")
        grant = read_grant(obj)
        size = ContainerSize(generation=generation, memory_mib=memory)
        (main,) = grant.containers
        obj["spec"] = write_grant(structs.replace(grant, containers=(structs.replace(main, size=size),)))
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
    await resized.follower.look()
    assert resized.limits() == (memory, memory) and resized.remembered() == memory
    applied = AppliedSize(pod_uid=resized.uid, container="main", generation=1, memory_mib=memory)
    assert resized.published[-1] == (applied,)


async def test_what_waits_says_why_and_is_tried_again(resized: Resized, monkeypatch: pytest.MonkeyPatch) -> None:
    def holds(folder: Path, limits: object) -> None:
        raise MemoryHeld("it holds 800 MiB")

    await resized.size(1, 500)
    with monkeypatch.context() as patch:
        patch.setattr(module, "resize_container", holds)
        await resized.follower.look()
    assert resized.remembered() == 1000
    (published,) = resized.published[-1]
    assert (published.generation, published.waiting) == (0, "container main: it holds 800 MiB")
    assert (published.held_generation, published.memory_mib) == (1, 1000)
    await resized.follower.look()
    assert resized.limits() == (500, 500) and (
        resized.published[-1][0].generation,
        resized.published[-1][0].held_generation,
    ) == (1, 0)


async def test_an_annotation_alone_changes_nothing(resized: Resized) -> None:
    resized.follower.observe(resized.uid, "done main=9000")
    await resized.follower.look()
    assert resized.limits()[0] == 1000 and resized.published == []


@pytest.mark.parametrize("memory", [2000, 500])
async def test_an_agent_that_dies_at_any_write_never_counts_less_than_may_be_used(tmp_path: Path, memory: int) -> None:
    for at in itertools.count():
        resized = Resized(tmp_path / str(at))
        await resized.begin()
        await resized.size(1, memory)
        resized.start(DyingFiles(at, torn=False))
        died = False
        try:
            await resized.follower.look()
        except Died:
            died = True
        resized.start()
        assert resized.remembered() >= max(resized.limits())
        await resized.follower.look()
        assert (resized.limits(), resized.remembered()) == ((memory, memory), memory)
        if not died:
            assert at >= 2
            return
