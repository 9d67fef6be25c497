"""The page and its events for viewers who come from elsewhere, each with a bearer token.

The files of the page are the same for everyone and tell nothing of the cluster. Events are for viewers whose token the
API server accepts, and have only what it lets them list.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from lamina.operations.dashboard.answers import BEAT_S, HEADERS, PageEvents, details_answer, page_file
from lamina.operations.dashboard.board import Board, Posted
from lamina.operations.dashboard.details import DetailReader, MayList
from lamina.operations.dashboard.forms import answered
from lamina.operations.dashboard.viewers import DashboardViewers, ViewerAccess, namespaces_of, visible
from lamina.ports.caller_reviews import CallerVerdict, bearer_token
from lamina.ports.clock import Clock, within
from lamina.ports.listener import Address, listening
from lamina.ports.metrics import metrics_context

TOKEN_HEADER = "Lamina-Token"
"""Of the page. Proxies of the API server keep `Authorization` for themselves."""
MAX_STREAMS = 256
_FULL = CallerVerdict(503, f"{MAX_STREAMS} viewers look at this dashboard already; try again later")


class _View(NamedTuple):
    """What one viewer may see now."""

    posted: Posted
    access: ViewerAccess


class ViewerServer:
    """Serves one board."""

    def __init__(self, board: Board, clock: Clock, viewers: DashboardViewers, details: DetailReader) -> None:
        self._board = board
        self._details = details
        self._clock = clock
        self._viewers = viewers
        self._streams = 0

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", _alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/events", self._events)
        app.router.add_get("/fits", self._fits)
        app.router.add_get("/pod", self._pod)
        app.router.add_get("/gpu", self._gpu)
        app.router.add_get("/use", self._use)
        app.router.add_get("/{name:[A-Za-z_./]*}", _headed_file)
        return app

    async def serve(
        self, address: Address, writers: Sequence[Callable[[], Awaitable[None]]], say: Callable[[str], None]
    ) -> None:
        """Serve HTTPS while the writers of the board run. `say` gets the address. Raises BadInput."""
        tls = metrics_context(self._clock.wall(), "dashboard")
        async with listening("the dashboard", self.application(), address, tls) as bound:
            say(f"https://{bound}/")
            writing = asyncio.gather(*(write() for write in writers))
            try:
                await writing
            finally:
                writing.cancel()
                self._board.close()

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._board.current.ready else 503)

    async def _fits(self, request: web.Request) -> web.Response:
        """Quotas are left out: a viewer may not be allowed to read them."""
        view = await self._view(_token(request))
        if isinstance(view, CallerVerdict):
            return web.Response(status=view.status, text=view.reason, headers=HEADERS)
        if not (view.access.nodes and view.access.everywhere):
            sentence = "you may not list inventories and the pods of all namespaces, on which an answer depends"
            return web.Response(status=400, text=sentence, headers=HEADERS)
        objects = self._board.objects
        return await answered(request.query, objects and objects._replace(quotas=[]), "default")

    async def _pod(self, request: web.Request) -> web.Response:
        asked = request.query.get("uid", "")
        return await self._answered(request, lambda access, may: self._details.pod(asked, access, may))

    async def _gpu(self, request: web.Request) -> web.Response:
        asked = request.query.get("uuid", "")
        return await self._answered(request, lambda access, may: self._details.gpu(asked, access, may))

    async def _use(self, request: web.Request) -> web.Response:
        asked = request.query.get("pods", "").split(",")

        async def use(access: ViewerAccess, _: MayList) -> object:
            return self._details.use(asked, access)

        return await self._answered(request, use)

    async def _answered(
        self, request: web.Request, answer: Callable[[ViewerAccess, MayList], Awaitable[object]]
    ) -> web.Response:
        """What a viewer gets of one pod or GPU."""
        token = _token(request)
        access = await self._viewers.access(token, namespaces_of(self._board.current.document))
        if isinstance(access, CallerVerdict):
            return web.Response(status=access.status, text=access.reason, headers=HEADERS)

        async def may(namespace: str) -> bool:
            return await self._viewers.may_list_events(token, namespace)

        return details_answer(await answer(access, may))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        token = _token(request)
        view = await self._view(token)
        if self._streams >= MAX_STREAMS and isinstance(view, _View):
            view = _FULL
        if isinstance(view, CallerVerdict):
            return web.Response(status=view.status, text=view.reason, headers=HEADERS)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                await self._stream(response, token, view)
        finally:
            self._streams -= 1
        return response

    async def _stream(self, response: web.StreamResponse, token: str, view: "_View | CallerVerdict") -> None:
        """Write until the board is closed, or the viewer may see nothing any more."""
        events = PageEvents(self._board)
        access: ViewerAccess | None = None
        while isinstance(view, _View) and not self._board.closed:
            changed, access = access not in (None, view.access), view.access
            namespace = min(namespaces_of(view.posted.document), default="default")
            await response.write(events.next(view.posted, namespace, access=access, changed=changed))
            with contextlib.suppress(TimeoutError):
                await within(self._clock, BEAT_S, self._board.newer(events.version))
            view = await self._view(token)

    async def _view(self, token: str) -> _View | CallerVerdict:
        """What the viewer sees, of one moment. Asking may take long, so what is posted meanwhile is not shown yet."""
        posted = self._board.current
        access = await self._viewers.access(token, namespaces_of(posted.document))
        if isinstance(access, CallerVerdict):
            return access
        problem = posted.usage_problem if access.nodes else ""
        return _View(posted._replace(document=visible(posted.document, access), usage_problem=problem), access)


def _token(request: web.Request) -> str:
    return bearer_token(request.headers.get("Authorization", "")) or request.headers.get(TOKEN_HEADER, "")


async def _alive(_: web.Request) -> web.Response:
    return web.Response()


async def _headed_file(request: web.Request) -> web.StreamResponse:
    response = await page_file(request)
    response.headers.update(HEADERS)
    return response
