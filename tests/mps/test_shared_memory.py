"""The clients of each GPU share a tmpfs of their own, whatever ends when."""

from pathlib import Path

import pytest

from lamina.agent.mps.clients import client_edits
from lamina.agent.mps.lifecycle import end_daemons
from lamina.ports.mounts import MountPoint
from lamina.ports.mps import Home
from tests.agent.mps import FIRST, SECOND, died
from tests.mps.nodes import SIZE_MIB, ServedNode


def shm(node: ServedNode, gpu: str = FIRST) -> Path:
    return Home(gpu, node.root / "mps").shm


async def test_each_gpu_has_a_tmpfs_of_the_configured_size_that_its_clients_get(tmp_path: Path) -> None:
    node = ServedNode(tmp_path, gpus=2)
    node.start(10)
    await node.reconcile()
    assert [node.state(gpu) for gpu in (FIRST, SECOND)] == [("ready", "")] * 2
    assert node.mps.mounts.sizes == {shm(node): SIZE_MIB, shm(node, SECOND): SIZE_MIB}
    assert all([each.safe for each in mounted] == [True] for mounted in node.mps.mounts.table.values())
    (mount,) = (each for each in client_edits("r", node.daemons.home(FIRST)).mounts if each.container == "/dev/shm")
    assert mount.host == shm(node) and not mount.executable


async def test_nothing_stays_mounted_when_a_daemon_is_not_needed(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    node.start(10)
    await node.reconcile()
    node.start(0)
    await node.reconcile(2)
    assert node.mps.mounts.table == {}
    assert node.traces() == ([], [], [], b"{}")


async def test_an_agent_that_starts_again_keeps_daemon_and_mount(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    node.start(10)
    await node.reconcile()
    daemon, mounted = node.mps.daemons[FIRST], node.mps.mounts.table[shm(node)]
    node.hold("client")
    node.mps.serve()
    node.start(10)
    await node.daemons.take_over()
    await node.reconcile(2)
    assert node.mps.daemons[FIRST] is daemon
    assert node.mps.mounts.table[shm(node)] is mounted


async def test_a_mount_that_was_left_is_replaced(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    shm(node).mkdir(parents=True)
    left = [MountPoint(str(shm(node)), kind, frozenset()) for kind in ("tmpfs", "ext4")]
    node.mps.mounts.table[shm(node)] = left
    node.start(10)
    await node.reconcile()
    assert node.state() == ("ready", "")
    assert [(each.kind, each.safe) for each in node.mps.mounts.at(shm(node))] == [("tmpfs", True)]


async def test_without_its_tmpfs_no_client_joins_a_daemon(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    node.mps.mounts.refuses = "mount: permission denied."
    node.start(10)
    await node.reconcile()
    assert node.state() == ("failed", "mount: permission denied.")
    assert node.mps.started == [] and node.healthy_devices() == []
    node.mps.mounts.refuses = ""
    await node.clock.advance(60)
    await node.reconcile()
    assert node.state() == ("ready", "")
    node.mps.mounts.table.clear()
    node.mps.mounts.refuses = "mount: permission denied."
    await node.reconcile()
    assert node.state()[0] == "failed" and node.healthy_devices() == []


async def test_uninstalling_unmounts(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    node.start(10)
    await node.reconcile()
    assert await end_daemons(node.root / "mps.json", node.mps, node.nvml, node.files, node.clock) == []
    assert (node.mps.mounts.table, node.traces()) == ({}, ([], [], [], b"{}"))


@pytest.mark.parametrize(("first", "then"), [(0, 10), (10, 4), (10, 0)], ids=["up", "other limits", "down"])
async def test_a_service_that_is_killed_at_any_step_is_followed_by_the_same_end(
    tmp_path: Path, first: int, then: int
) -> None:
    await ends_the_same(tmp_path, first, then, agent_dies=False)


@pytest.mark.parametrize(("first", "then"), [(0, 10), (10, 4), (10, 0)], ids=["up", "other limits", "down"])
async def test_so_is_one_that_is_killed_with_its_agent(tmp_path: Path, first: int, then: int) -> None:
    await ends_the_same(tmp_path, first, then, agent_dies=True)


async def ends_the_same(tmp_path: Path, first: int, then: int, *, agent_dies: bool) -> None:
    at, survived = 0, False
    while not survived:
        node = ServedNode(tmp_path / str(at))
        node.start(first)
        await node.reconcile()
        node.mps.life.left = at
        if agent_dies:
            await died(node, at, then)
        node.start(then)
        await node.reconcile(2)
        survived = not node.mps.was_killed
        node.mps.life.left = None
        for _ in range(4):
            await node.clock.advance(60)
            await node.reconcile()
        if then:
            assert node.state() == ("ready", ""), at
            assert node.mps.daemons[FIRST].memory == f"{40960 // then}M", at
            assert [each.kind for each in node.mps.mounts.at(shm(node))] == ["tmpfs"], at
        else:
            assert (node.mps.mounts.table, node.traces()) == ({}, ([], [], [], b"{}")), at
        at += 1
    assert at > 6, "the service makes as many changes"


async def test_a_client_keeps_its_daemon_when_the_service_is_killed(tmp_path: Path) -> None:
    for at in range(40):
        node = ServedNode(tmp_path / str(at))
        node.start(10)
        await node.reconcile()
        node.hold("client")
        daemon = node.mps.daemons[FIRST]
        node.mps.life.left = at
        node.start(4)
        await node.reconcile(3)
        assert node.mps.daemons[FIRST] is daemon, at
