"""The agent may die at any step: the next one comes to the same end.

The process dies before or amid its nth change. Whatever a call left behind, a new agent
reconciles, kubelet calls again, and the disk is as if nothing had happened.
"""

import itertools
from pathlib import Path

import pytest

from lamina.ports.kube import PODS
from tests.agent.node import Node, container, share
from tests.worlds.deaths import Died, Life


async def admitted(node: Node) -> None:
    await node.pod("p", container("init", share(0, 1), init=True), container("main", share(0, 2), share(1, 3)))
    await node.admit("p", {"init": ["ticket-0"], "main": ["ticket-0", "ticket-1"], "side": ["ticket-2"]})


def comparable(disk: dict[str, str], names: list[str]) -> dict[str, str]:
    """The disk with the random names replaced by their number."""
    for number, name in enumerate(names):
        disk = {path.replace(name, f"<{number}>"): text.replace(name, f"<{number}>") for path, text in disk.items()}
    return disk


@pytest.mark.parametrize("torn", [False, True])
async def test_prepare(tmp_path: Path, torn: bool) -> None:
    async def prepared(root: Path, at: int | None) -> tuple[dict[str, str], bool]:
        node = Node(root)
        uid = await node.pod("p", container("init", share(0, 1), init=True), container("main", share(0, 2)))
        await node.admit("p", {"init": ["ticket-0"], "main": ["ticket-0"]})
        names = [a.name for a in node.record.allocations]
        died = False
        if at is not None:
            died = await node.dies(Life(2 * at, torn=torn), lambda: node.preparer.prepare(["ticket-0"]))
        await node.preparer.prepare(["ticket-0"])
        return comparable(node.disk(), [*names, uid]), died

    expected, _ = await prepared(tmp_path / "whole", None)
    for at in itertools.count():
        found, died = await prepared(tmp_path / str(at), at)
        assert {path.replace(str(tmp_path), ""): "" for path in found} == dict.fromkeys(expected, ""), at
        whole = {path: text.replace(str(tmp_path / "whole"), "") for path, text in expected.items()}
        assert {path: text.replace(str(tmp_path / str(at)), "") for path, text in found.items()} == whole, at
        if not died:
            assert at > 6
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_allocate(tmp_path: Path, torn: bool) -> None:
    node = Node(tmp_path)
    node.start(Life(0, torn=torn))
    with pytest.raises(Died):
        node.allocate("ticket-0")
    node.start()
    assert node.record.allocations == ()
    assert node.record.of(frozenset({"ticket-0"}), "nvidia.com/gpu") == ()
    name = node.allocate("ticket-0")
    node.start()
    assert [a.name for a in node.record.allocations] == [name]


@pytest.mark.parametrize("torn", [False, True])
async def test_release(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = Node(tmp_path / str(at))
        await admitted(node)
        await node.preparer.prepare(["ticket-0", "ticket-1"])
        node.kubelet.listed.clear()
        await node.kube.delete(PODS, "p", namespace="default")
        died = await node.dies(Life(2 * at, torn=torn), lambda node=node: node.releaser.reconcile())  # type: ignore[misc]
        await node.releaser.reconcile()
        left = [path for path in node.disk() if path.startswith(("cdi", "containers"))]
        assert left == [], at
        assert not any(allocation.bound for allocation in node.record.allocations)
        if not died:
            assert at > 2
            return
