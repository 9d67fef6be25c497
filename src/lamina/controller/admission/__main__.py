"""The admission process, as the controller starts it: `python -m lamina.controller.admission LISTENER LOG_LEVEL`.

The listening socket is inherited under the descriptor LISTENER, and standard input is the channel to the controller.
"""

import asyncio
import ctypes
import gc
import resource
import signal
import socket
import sys

from lamina.controller.admission.channel import open_channel
from lamina.controller.admission.messages import ToProcess
from lamina.controller.admission.worker import AdmissionWorker
from lamina.ports.clock import SystemClock
from lamina.ports.log_format import log_to_stderr

_MOST_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space. A process that wants more ends and is started again."""

_PR_SET_PDEATHSIG = 1


def main(listener: int, log_level: int) -> None:
    """Serve until the controller says so, or is gone."""
    log_to_stderr(log_level)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they reach the controller too, which then ends this process
    # The port is free for the next controller at once, whatever this process is doing when its own is killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _MOST_MEMORY if hard == resource.RLIM_INFINITY else min(hard, _MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    gc.freeze()
    asyncio.run(_run(socket.socket(fileno=listener), socket.socket(fileno=sys.stdin.fileno())))


async def _run(listener: socket.socket, controller: socket.socket) -> None:
    channel = await open_channel(controller, ToProcess)
    await AdmissionWorker(channel, SystemClock()).run(listener)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
