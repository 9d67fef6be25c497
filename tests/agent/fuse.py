"""An agent's part for MPS that dies at a step.

`Fuse` lets the process die before or after its nth call that changes anything: the disk, the GPU, or MPS.
"""

from collections.abc import Callable
from typing import Any

from tests.agent.mps import Node

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
        await node.reconcile(2)
    except Died:
        return True
    finally:
        pull(node)
    return False
