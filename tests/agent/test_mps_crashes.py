"""The agent may be killed at any step of bringing a daemon up or taking it down: the next one comes to the same end.

`Fuse` lets the process die before or after its nth call that changes anything: the disk, the GPU, or MPS.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.mps import FACTS, FIRST, Node

CHANGES = {
    "files": ("write", "make_folder", "remove", "remove_tree"),
    "mps": ("start", "ask", "end"),
    "nvml": ("set_exclusive",),
}


class Died(BaseException):
    """The process is gone; nothing below may catch it."""


class Fuse:
    """Counts the changes that a node makes; the one numbered `at` is the last, and happens or not."""

    def __init__(self, node: Node, at: int, *, happens: bool) -> None:
        self.left = at
        self.happens = happens
        for door, names in CHANGES.items():
            for name in names:
                setattr(getattr(node, door), name, self._watched(getattr(getattr(node, door), name)))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left >= 0:
                return call(*args, **more)
            if not self.happens:
                raise Died
            result = call(*args, **more)
            if hasattr(result, "__await__"):
                return self._last(result)
            raise Died

        return counted

    async def _last(self, result: Any) -> None:
        await result
        raise Died


def pull(node: Node) -> None:
    """Take the fuse out."""
    for door, names in CHANGES.items():
        for name in names:
            vars(getattr(node, door)).pop(name, None)


async def died(node: Node, at: int, replicas: int, *, happens: bool) -> bool:
    """Whether an agent that starts now and has two looks dies at its change number `at`."""
    Fuse(node, at, happens=happens)
    try:
        node.start(replicas)
        await node.look(2)
    except Died:
        return True
    finally:
        pull(node)
    return False


@pytest.mark.parametrize("happens", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("first", "then"), [(0, 10), (10, 4), (10, 0)], ids=["up", "other limits", "down"])
async def test_killed_at_any_step_the_next_agent_comes_to_the_same_end(
    tmp_path: Path, first: int, then: int, happens: bool
) -> None:
    for at in itertools.count():
        node = Node(tmp_path / str(at), FACTS[:1])
        node.start(first)
        await node.look()
        dead = await died(node, at, then, happens=happens)
        node.start(then)
        await node.look(3)
        if then:
            assert node.state() == ("ready", ""), at
            assert node.mps.daemons[FIRST].memory == f"{40960 // then}M", at
            assert node.nvml.exclusive == {FIRST}, at
        else:
            assert node.traces() == ([], [], [], b"{}"), at
        if not dead:
            assert at >= 6, "the fuse counts what the agent does"
            return


@pytest.mark.parametrize("happens", [False, True], ids=["before", "after"])
async def test_a_client_keeps_its_daemon_wherever_the_agent_dies(tmp_path: Path, happens: bool) -> None:
    for at in itertools.count():
        node = Node(tmp_path / str(at), FACTS[:1])
        node.start(10)
        await node.look()
        node.hold("client")
        daemon = node.mps.daemons[FIRST]
        dead = await died(node, at, 4, happens=happens)
        node.start(4)
        await node.look(3)
        assert node.mps.daemons[FIRST] is daemon, at
        assert (daemon.memory, daemon.percent) == ("4096M", 10.0), at
        if not dead:
            return
