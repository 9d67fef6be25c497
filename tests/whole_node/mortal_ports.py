"""The ports of an agent that may die at any step: its clock, and whatever it changes."""

import asyncio
import heapq
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lamina.ports.clock import FakeClock
from lamina.ports.files import Files

CHANGES = {
    *("write", "make_folder", "make_private_folder", "remove", "remove_tree"),
    *("start", "ask", "end"),
    *("set_exclusive", "set_mig_mode", "create_mig", "destroy_mig"),
    *("create", "replace", "patch", "delete"),
}
"""The calls through ports that change something: of the disk, MPS, NVML and Kubernetes."""


class Died(BaseException):
    """The process is gone; nothing below may catch it."""


class Life:
    """One process's. With `left` it ends by itself after so many more of the moments before and after changes."""

    def __init__(self) -> None:
        self.left: int | None = None
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


class QuickFiles(Files):
    """Does not wait for the disk."""

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        self.make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        temporary.write_bytes(content)
        temporary.chmod(mode)
        os.replace(temporary, path)  # noqa: PTH105


class Clock(FakeClock):
    """At each moment everybody does all that there is to do, and those of one moment wake together."""

    async def advance(self, seconds: float) -> None:
        end = self._now + seconds
        await all_done()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now = max(self._now, self._sleepers[0][0])
            while self._sleepers and self._sleepers[0][0] <= self._now:
                future = heapq.heappop(self._sleepers)[-1]
                if not future.done():
                    future.set_result(None)
            await all_done()
        self._now = end


async def all_done() -> None:
    """Wait until every task waits for something."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    while ready:  # noqa: ASYNC110
        await asyncio.sleep(0)
