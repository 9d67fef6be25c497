"""Processes that die before or after any change that they make through their ports."""

import inspect
from collections.abc import Callable
from typing import Any

CHANGES = {
    *("write", "make_folder", "make_private_folder", "remove", "remove_tree"),
    *("start", "ask", "end"),
    *("tmpfs", "unmount"),
    *("set_exclusive", "set_mig_mode", "create_mig", "destroy_mig"),
    *("create", "replace", "patch", "delete", "bind", "evict"),
}
"""The calls through ports that change something: of the disk, MPS, mounts, NVML and Kubernetes."""


class Died(BaseException):
    """The process is gone; nothing below may catch it."""


class Life:
    """One process's. With `left` it ends by itself after so many more of the moments before and after changes.

    So a process that starts with `Life(2 * n)` dies before its change number n, counted from 0, and one with
    `Life(2 * n + 1)` right after it.
    """

    def __init__(self, left: int | None = None) -> None:
        self.left = left
        self.over = False

    def moment(self) -> None:
        if self.left == 0:
            self.over = True
        elif self.left is not None:
            self.left -= 1
        self.check()

    def check(self) -> None:
        if self.over:
            raise Died


class MortalPort:
    """A port as one process has it: it opens no more when that has died."""

    def __init__(self, port: object, life: Life) -> None:
        self._port = port
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        return self._mortal(found, self._life.moment if name in CHANGES else self._life.check)

    def _mortal(self, call: Callable[..., Any], moment: Callable[[], None]) -> Callable[..., Any]:
        async def later(*args: Any, **more: Any) -> Any:
            moment()
            result = await call(*args, **more)
            moment()
            return result

        def now(*args: Any, **more: Any) -> Any:
            moment()
            result = call(*args, **more)
            moment()
            return result

        return later if inspect.iscoroutinefunction(call) else now
