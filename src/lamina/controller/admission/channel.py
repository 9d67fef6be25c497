"""Messages over a socket, in both directions."""

import asyncio
import socket
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from lamina.controller.admission.messages import LONGEST_MESSAGE
from lamina.errors import Outside

M = TypeVar("M")


class Channel(Generic[M]):
    """One end. It receives messages of the type `M`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, incoming: Any) -> None:
        """`incoming` is `M` as a value."""
        self._reader = reader
        self._writer = writer
        self._decoder = msgspec.json.Decoder(incoming)

    async def receive(self) -> M | None:
        """The next message; None when the other end is closed. Raises Outside for what is no such message."""
        try:
            line = await self._reader.readline()
            message: M | None = self._decoder.decode(line) if line.endswith(b"\n") else None
        except ConnectionError:
            return None
        except (msgspec.DecodeError, ValueError) as error:
            raise Outside(f"the other end of the channel sent what is no message: {error}") from error
        return message

    def send(self, message: Struct) -> None:
        """Send a message, or drop it where the other end is closed. Raises Outside for one that is too long."""
        line = msgspec.json.encode(message) + b"\n"
        if len(line) > LONGEST_MESSAGE:
            raise Outside(f"a message of {len(line)} bytes is too long; at most {LONGEST_MESSAGE} are sent")
        if not self._writer.is_closing():
            self._writer.write(line)

    async def drain(self) -> None:
        """Wait while more is under way than the other end reads. Raises ConnectionError where it is closed."""
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


async def open_channel(end: socket.socket, incoming: Any) -> Channel[Any]:
    """A channel over a connected socket, which it owns from then on."""
    reader, writer = await asyncio.open_connection(sock=end, limit=LONGEST_MESSAGE)
    return Channel(reader, writer, incoming)
