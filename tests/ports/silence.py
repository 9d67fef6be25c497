"""A way to a server on which connections go silent: nothing passes any more, and neither end notices."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class SilentProxy:
    """Passes bytes between clients and a port of this machine. What was open when `silence` was called stays open, and
    says nothing more; with `lasting`, neither does what is opened later."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._lasting = False
        self.opened = 0

    def silence(self, *, lasting: bool = False) -> None:
        self._lasting = lasting
        for task in self._tasks:
            task.cancel()

    def speak(self) -> None:
        """New connections pass bytes again."""
        self._lasting = False

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self._writers.append(writer)
        if self._lasting:
            return
        answers, requests = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers.append(requests)
        for source, sink in ((reader, requests), (answers, writer)):
            task = asyncio.ensure_future(_pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        self.silence(lasting=True)
        for writer in self._writers:
            writer.close()


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.close()


@contextlib.asynccontextmanager
async def silent_proxy(target: int) -> AsyncIterator[tuple[SilentProxy, int]]:
    """The proxy and its port."""
    proxy = SilentProxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await proxy.close()
