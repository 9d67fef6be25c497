"""The lab's child processes: the controller, and a kubelet, an agent and an MPS service per node. Each is restarted
when it ends.

In a real cluster a DaemonSet and a Deployment restart them. The lab does the same, so that you can try what happens
when one of them is killed. Each ends with the supervisor and writes to its own log.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from lamina_lab.host.processes import die_with_parent

# Like the back-off of a crashing container: short at first, then longer.
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 10.0
# A process that ran this long did not crash at startup, so the next pause is the first one again.
STEADY_S = 30.0


class Child(Struct, frozen=True):
    """How one process is started."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]


async def keep_running(child: Child) -> None:
    """Run the child and restart it whenever it ends. When this task is canceled, end it and wait for it."""
    loop = asyncio.get_running_loop()
    pause = FIRST_PAUSE_S
    while True:
        started = loop.time()
        await _run_once(child)
        if loop.time() - started > STEADY_S:
            pause = FIRST_PAUSE_S
        await asyncio.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_S)


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
        text.write(f"{child.name} exited with {code}; restarting it\n")


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
