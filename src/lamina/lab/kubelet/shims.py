"""Starting shims and hearing what they say: the kubelet's side of shim.py."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_SHIM = Path(__file__).with_name("shim.py")


class StartFailed(Exception):
    """The program could not be run; the message is what a container runtime says of it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: its exit code as a shell counts it, and the signal or 0.

    `lost` says that its supervisor was killed, so that the code is an assumption.
    """

    code: int
    signal: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a shim is to run. Either `log` names the file for its output, or `fds` are its three descriptors."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path | None = None
    fds: tuple[int, int, int] | None = None
    tty: bool = False
    stdin: bool = False

    def marked(self, marker: Mapping[str, str]) -> Program:
        """The same program with `marker` in its environment, so that it is found again."""
        return replace(self, env={**self.env, **marker})

    def config(self) -> dict[str, Any]:
        common = {"argv": list(self.argv), "env": dict(self.env), "cwd": str(self.cwd), "tty": self.tty}
        if self.fds is not None:
            return common | {"fds": list(self.fds)}
        return common | {"log": str(self.log), "stdin": self.stdin}


class Shim:
    """One running shim. Made in the event loop's thread: the kernel ties its life to the thread that made it."""

    def __init__(self, program: Program, marker: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[int] = self._loop.create_future()
        self._exited: asyncio.Future[Exit] = self._loop.create_future()
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SHIM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=program.fds or (),
            start_new_session=True,
            env=dict(marker),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands = self._process.stdin
        self._events = self._process.stdout
        os.set_blocking(self._events.fileno(), False)
        self._loop.add_reader(self._events.fileno(), self._read_events)
        self._tell(json.dumps(program.config()))

    @property
    def pid(self) -> int:
        """The shim's own process id."""
        return self._process.pid

    async def started(self) -> int:
        """The program's process id once it runs. Raises StartFailed."""
        return await asyncio.shield(self._started)

    async def exited(self) -> Exit:
        """How the program ended, once nothing of it is left."""
        return await asyncio.shield(self._exited)

    def stop(self, grace_s: float) -> None:
        """Ask the program to end; after `grace_s` seconds it and all it made are killed."""
        self._tell(f"stop {grace_s}")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended already
            self._commands.write(line.encode() + b"\n")
            self._commands.flush()

    def _read_events(self) -> None:
        data = self._events.read(65536)
        if data is None:
            return
        if not data:
            self._ended()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, event: dict[str, Any]) -> None:
        if event["event"] == "started":
            self._started.set_result(event["pid"])
        elif event["event"] == "failed":
            self._started.set_exception(StartFailed(event["message"]))
            self._started.exception()  # whoever waits gets it; nobody waiting is not an error
        elif event["event"] == "exited":
            self._exited.set_result(Exit(event["code"], event["signal"]))

    def _ended(self) -> None:
        """The shim closed its events: it is ending, or was killed."""
        self._loop.remove_reader(self._events.fileno())
        self._events.close()
        with contextlib.suppress(OSError):
            self._commands.close()
        self._process.wait()
        if not self._started.done():
            self._started.set_exception(StartFailed("the container's supervisor ended before it ran the program"))
            self._started.exception()
        if not self._exited.done():
            self._exited.set_result(Exit(137, 9, lost=True))
