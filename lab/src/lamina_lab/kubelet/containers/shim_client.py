"""Starts shims and reads their events: the kubelet's side of shim.py."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

_SHIM = Path(__file__).with_name("shim.py")


class StartError(Exception):
    """The program could not be run; the message is a container runtime's."""


class Exit(Struct, frozen=True):
    """How a program ended: its exit code as a shell reports it, and the signal or 0.

    `lost` says that its supervisor was killed, so that the code is an assumption.
    """

    code: int
    signal: int = 0
    lost: bool = False


class Program(Struct, frozen=True, kw_only=True):
    """What a shim runs. Either `log` is the file for its output, or `fds` are its three descriptors."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path | None = None
    fds: tuple[int, int, int] | None = None
    tty: bool = False
    stdin: bool = False

    def marked(self, marker: Mapping[str, str]) -> "Program":
        """The same program with `marker` in its environment."""
        return msgspec.structs.replace(self, env={**self.env, **marker})

    def config(self) -> dict[str, Any]:
        common = {"argv": list(self.argv), "env": dict(self.env), "cwd": str(self.cwd), "tty": self.tty}
        if self.fds is not None:
            return common | {"fds": list(self.fds)}
        return common | {"log": str(self.log), "stdin": self.stdin}


class Shim:
    """One running shim. Create it in the event loop's thread: the kernel ties its life to the thread that made it."""

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
        self._send(json.dumps(program.config()))

    @property
    def pid(self) -> int:
        """The shim's own process id."""
        return self._process.pid

    async def started(self) -> int:
        """The program's process id once it runs. Raises StartError."""
        return await asyncio.shield(self._started)

    async def exited(self) -> Exit:
        """How the program ended, once none of its processes is left."""
        return await asyncio.shield(self._exited)

    def stop(self, grace_s: float) -> None:
        """Ask the program to end. After `grace_s` seconds it and its child processes are killed."""
        self._send(f"stop {grace_s}")

    def _send(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has already ended
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
            self._receive(json.loads(line))

    def _receive(self, event: dict[str, Any]) -> None:
        if event["event"] == "started":
            self._started.set_result(event["pid"])
        elif event["event"] == "failed":
            self._started.set_exception(StartError(event["message"]))
            self._started.exception()  # avoids asyncio's warning if no task waits for it
        elif event["event"] == "exited":
            self._exited.set_result(Exit(event["code"], event["signal"]))

    def _ended(self) -> None:
        """The shim closed its events: it is ending, or it was killed."""
        self._loop.remove_reader(self._events.fileno())
        self._events.close()
        with contextlib.suppress(OSError):
            self._commands.close()
        self._process.wait()
        if not self._started.done():
            self._started.set_exception(StartError("the container's supervisor ended before it ran the program"))
            self._started.exception()
        if not self._exited.done():
            self._exited.set_result(Exit(137, 9, lost=True))
