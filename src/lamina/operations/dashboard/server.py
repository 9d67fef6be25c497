"""The page and its events, over HTTP on this machine.

The address has a random token, because other users of the machine can reach the port too, and requests must name this
address as their host, because a page of another site can otherwise reach it through a name that it controls.
"""

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from aiohttp import web

from lamina.operations.dashboard.answers import BEAT_S, HEADERS, PageEvents, SharedEvents, details_answer, page_file
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.details import DetailReader
from lamina.operations.dashboard.forms import MAX_BYTES, answered, replayed
from lamina.ports.clock import Clock, within
from lamina.ports.listener import Address, listening

HOST = "127.0.0.1"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DashboardServer:
    """Serves one board. The token is new for each. `namespace` is that of "My pods"."""

    def __init__(
        self, board: Board, clock: Clock, details: DetailReader, *, namespace: str = "default", token: str = ""
    ) -> None:
        self.board = board
        self._clock = clock
        self._details = details
        self._namespace = namespace
        self._token = token or secrets.token_urlsafe(24)
        self._shared = SharedEvents(board)
        self._hosts: frozenset[str] = frozenset()

    @contextlib.asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[str]:
        """Serve meanwhile; yields the address to open. Raises BadInput if the port cannot be used."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BYTES)
        app.router.add_get("/{token}/events", self._events)
        app.router.add_get("/{token}/fits", self._fits)
        app.router.add_get("/{token}/pod", self._pod)
        app.router.add_get("/{token}/gpu", self._gpu)
        app.router.add_get("/{token}/use", self._use)
        app.router.add_post("/{token}/replay", replayed)
        app.router.add_get("/{token}/{name:[A-Za-z_./]*}", page_file)
        async with listening("the dashboard", app, Address(HOST, port)) as address:
            self._hosts = frozenset(f"{host}:{address.port}" for host in (HOST, "localhost"))
            try:
                yield f"http://{address}/{self._token}/"
            finally:
                self.board.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Answer only who names this address and has the token, and send every answer with the same headers."""
        if request.headers.get("Host", "") not in self._hosts:
            return _refused(f"this server answers only at {HOST} and localhost; open the address that it printed")
        given = request.path.split("/")[1]
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return _refused("the token is missing or wrong; open the address that `lamina dashboard` printed")
        try:
            response = await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=error.reason, headers=HEADERS)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    async def _fits(self, request: web.Request) -> web.StreamResponse:
        return await answered(request.query, self.board.objects, self._namespace)

    async def _pod(self, request: web.Request) -> web.StreamResponse:
        return details_answer(await self._details.pod(request.query.get("uid", "")))

    async def _gpu(self, request: web.Request) -> web.StreamResponse:
        return details_answer(await self._details.gpu(request.query.get("uuid", "")))

    async def _use(self, request: web.Request) -> web.StreamResponse:
        return details_answer(self._details.use(request.query.get("pods", "").split(",")))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: `change` with what is new, `beat` when nothing is."""
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = PageEvents(self._shared, request.query.get("view", ""))
        with contextlib.suppress(ConnectionError):
            while not self.board.closed:
                await response.write(events.next(self.board.current, self._namespace))
                with contextlib.suppress(TimeoutError):
                    await within(self._clock, BEAT_S, self.board.newer(events.version))
        return response


def _refused(sentence: str) -> web.Response:
    return web.Response(status=403, text=sentence, headers=HEADERS)


async def serve(
    server: DashboardServer, port: int, writers: Sequence[Callable[[], Awaitable[None]]], say: Callable[[str], None]
) -> None:
    """Serve while the writers of its board run. `say` gets the address once the cluster could be read."""
    async with server.serving(port) as url:
        writing = asyncio.gather(*(write() for write in writers))
        first = asyncio.ensure_future(_read_once(server.board))
        try:
            await asyncio.wait((writing, first), return_when=asyncio.FIRST_COMPLETED)
            if first.done():
                say(url)
            await writing
        finally:
            writing.cancel()
            first.cancel()


async def _read_once(board: Board) -> None:
    """Wait until the cluster was read, or a defect is to be shown."""
    while not (board.current.ready or board.current.lost):
        await board.newer(board.current.version)
