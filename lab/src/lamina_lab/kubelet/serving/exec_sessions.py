"""An exec session: a program next to a container, its streams carried over a WebSocket."""

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import termios
from collections.abc import Sequence
from typing import Any

from aiohttp import WSMsgType, web

from lamina_lab.kubelet.containers.instances import RunningContainer, Runtime
from lamina_lab.kubelet.containers.shim_client import Program, StartError
from lamina_lab.kubernetes.exec_channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT

CHUNK = 32 * 1024
END_OF_TRANSMISSION = b"\x04"


class ExecStreams:
    """The descriptors of an exec: the program's side, and ours to read and write."""

    def __init__(self, *, tty: bool, stdin: bool) -> None:
        self.master: int | None = None
        self.outputs: list[tuple[int, int]] = []
        self.input: int | None = None
        if tty:
            self.master, slave = os.openpty()
            self.program = (slave, slave, slave)
            self.outputs = [(self.master, STDOUT)]
            self.input = os.dup(self.master) if stdin else None
            return
        reader, writer = os.pipe() if stdin else (os.open("/dev/null", os.O_RDONLY), None)
        out, program_out = os.pipe()
        err, program_err = os.pipe()
        self.program = (reader, program_out, program_err)
        self.input = writer
        self.outputs = [(out, STDOUT), (err, STDERR)]

    def give_away(self) -> None:
        for fd in set(self.program):
            os.close(fd)

    def resize(self, columns: int, rows: int) -> None:
        if self.master is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def run_session(
    socket: web.WebSocketResponse,
    runtime: Runtime,
    instance: RunningContainer,
    command: Sequence[str],
    *,
    tty: bool,
    stdin: bool,
) -> None:
    """Run `command` in the container until it ends, the container ends, or the client disconnects."""
    streams = ExecStreams(tty=tty, stdin=stdin)
    own = instance.program
    env = {**own.env, "TERM": "xterm"} if tty else own.env
    program = Program(argv=command, env=env, cwd=own.cwd, fds=streams.program, tty=tty)
    shim = runtime.companion(instance, program)
    streams.give_away()
    hearing = asyncio.create_task(_receive(socket, streams))
    telling = [asyncio.create_task(_send(socket, fd, channel)) for fd, channel in streams.outputs]
    try:
        await shim.started()
        output = asyncio.ensure_future(asyncio.gather(*telling))
        await asyncio.wait((output, hearing), return_when=asyncio.FIRST_COMPLETED)
        if not output.done():
            shim.stop(0)  # the client disconnected
        await output
        outcome = await shim.exited()
        status = exit_status(outcome.code)
    except StartError as error:
        await asyncio.gather(*telling)
        status = failure(
            "error executing command in container: failed to exec in container: failed to start exec: OCI runtime "
            f"exec failed: exec failed: unable to start container process: {error}: unknown"
        )
    finally:
        hearing.cancel()
        for task in telling:
            task.cancel()
        shim.stop(0)
        instance.companions.discard(shim)
    await end_session(socket, status)


async def end_session(socket: web.WebSocketResponse, status: dict[str, Any]) -> None:
    """Send the last frame and close."""
    with contextlib.suppress(ConnectionError):
        await socket.send_bytes(bytes((ERROR,)) + json.dumps(status).encode())
    await socket.close()


def exit_status(code: int) -> dict[str, Any]:
    """The last frame of a session in version 4 of Kubernetes' protocol."""
    common = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    if code == 0:
        return {**common, "status": "Success"}
    return {
        **common,
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failure(message: str) -> dict[str, Any]:
    """The last frame of a session whose command never ran."""
    common = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**common, "message": f"Internal error occurred: {message}", "reason": "InternalError", "code": 500}


async def _send(socket: web.WebSocketResponse, fd: int, channel: int) -> None:
    """Send what comes from `fd` until it ends, no faster than the client reads."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    try:
        # Reading fails when the last process with the terminal's other side has ended.
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                with contextlib.suppress(ConnectionError):
                    await socket.send_bytes(bytes((channel,)) + data)
    finally:
        transport.close()


async def _receive(socket: web.WebSocketResponse, streams: ExecStreams) -> None:
    """Handle frames until the client disconnects."""
    loop = asyncio.get_running_loop()
    transport: asyncio.WriteTransport | None = None
    protocol: asyncio.BaseProtocol | None = None
    writer: asyncio.StreamWriter | None = None
    if streams.input is not None:
        pipe = os.fdopen(streams.input, "wb", 0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        async for message in socket:
            if message.type is not WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == RESIZE:
                size = json.loads(data)
                streams.resize(int(size["Width"]), int(size["Height"]))
            elif channel == CLOSE and data[:1] == bytes((STDIN,)) and writer is not None:
                await _close_input(writer, tty=streams.master is not None)
            elif channel == STDIN and writer is not None:
                with contextlib.suppress(ConnectionError):
                    writer.write(data)
                    await writer.drain()
    finally:
        if transport is not None:
            transport.close()


async def _close_input(writer: asyncio.StreamWriter, *, tty: bool) -> None:
    if tty:
        writer.write(END_OF_TRANSMISSION)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
    else:
        writer.close()
