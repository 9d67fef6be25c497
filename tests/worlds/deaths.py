"""Processes that die before, amid or after any change that they make through their ports."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from lamina.core.mig import Placed
from lamina.ports.files import Files
from lamina.ports.nvml import FakeNvml

T = TypeVar("T")

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
    `Life(2 * n + 1)` right after it. Where `torn` is set, the first leaves half of the change.
    """

    def __init__(self, left: int | None = None, *, torn: bool = False) -> None:
        self.left = left
        self.torn = torn
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

    @property
    def tears(self) -> bool:
        """Whether the change that would begin now is the one that is left half done."""
        return self.torn and self.left == 0 and not self.over


def mortal(port: T, life: Life) -> T:
    """A port as one process has it: it opens no more when that has died."""
    return cast(T, _MortalPort(port, life))


class _MortalPort:
    def __init__(self, port: object, life: Life) -> None:
        self._port = port
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found
        moment = self._life.moment if name in CHANGES else self._life.check
        return self._mortal(found, moment, HALVES.get(name))

    def _mortal(self, call: Callable[..., Any], moment: Callable[[], None], half: Callable[..., Any] | None) -> Any:
        async def later(*args: Any, **more: Any) -> Any:
            if half and self._life.tears:
                await half(self._port, *args)
            moment()
            result = await call(*args, **more)
            moment()
            return result

        def now(*args: Any, **more: Any) -> Any:
            if half and self._life.tears:
                half(self._port, *args)
            moment()
            result = call(*args, **more)
            moment()
            return result

        return later if inspect.iscoroutinefunction(call) else now


def _write_half(files: Files, path: Path, content: bytes) -> None:
    files.make_folder(path.parent)
    path.with_name(f".{path.name}.tmp").write_bytes(content[: len(content) // 2])


def _remove_first(files: Files, path: Path) -> None:
    for inside in [*path.iterdir()][:1] if path.is_dir() else ():
        files.remove_tree(inside)


async def _create_half(nvml: FakeNvml, uuid: str, place: Placed) -> None:
    made = await nvml.create_mig(uuid, place)
    await _destroy_half(nvml, uuid, made.id)


async def _destroy_half(nvml: FakeNvml, uuid: str, instance: int) -> None:
    """What is left of an instance without its compute instance."""
    there = nvml.instances[uuid]
    nvml.instances[uuid] = tuple(each._replace(uuid="") if each.id == instance else each for each in there)


HALVES: Mapping[str, Callable[..., Any]] = {
    "write": _write_half,
    "remove_tree": _remove_first,
    "create_mig": _create_half,
    "destroy_mig": _destroy_half,
}
"""What is left of a change in the middle of which the process dies, by call. All others are done or not."""
