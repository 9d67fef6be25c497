"""The lab's own processes: one kubelet and one agent a node, one control part; each restarted when it ends.

A real cluster restarts these as a DaemonSet and a Deployment would; the lab does the same, so that killing one of them
is a thing to try. Each dies with the supervisor, and writes to a log of its own.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lamina.lab.processes import die_with_parent

# As the restart of a crashing container: soon at first, then ever later.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
# A process that ran this long did not crash at its start, so the next pause is the first again.
STEADY_S = 30.0


@dataclass(frozen=True)
class Child:
    """How one process is started."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]


async def keep_running(child: Child) -> None:
    """Run the child, and again whenever it ends, until this task is cancelled; then end it and wait for it."""
    loop = asyncio.get_running_loop()
    pause = FIRST_PAUSE_S
    while True:
        began = loop.time()
        await _run_once(child)
        if loop.time() - began > STEADY_S:
            pause = FIRST_PAUSE_S
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


async def _run_once(child: Child) -> None:
    log = os.open(child.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = await asyncio.create_subprocess_exec(
            *child.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(child.environment),
            preexec_fn=die_with_parent,
        )
    finally:
        os.close(log)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        await _end(process)
        raise
    with child.log.open("a") as text:
        text.write(f"{child.name} ended with {code}; it is started again\n")


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM, five seconds, SIGKILL."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await process.wait()
                return
        process.kill()
        await process.wait()
