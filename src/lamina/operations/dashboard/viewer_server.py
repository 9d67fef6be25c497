"""The page and its events for viewers who come from elsewhere, each with a bearer token.

The files of the page are the same for everyone and tell nothing of the cluster. Events are for viewers whose token the
API server accepts, and have only what it lets them list. One account has a part of the streams, and those who may list
nothing have half of them at most.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from lamina.operations.dashboard.answers import BEAT_S, HEADERS, PageEvents, SharedEvents, details_answer, page_file
from lamina.operations.dashboard.board import Board, Posted
from lamina.operations.dashboard.details import DetailReader, MayList
from lamina.operations.dashboard.forms import answered
from lamina.operations.dashboard.viewers import DashboardViewers, ViewerAccess, namespaces_of, visible
from lamina.ports.caller_reviews import UNKNOWN, CallerVerdict, bearer_token
from lamina.ports.clock import Clock, within
from lamina.ports.listener import Address, listening
from lamina.ports.metrics import metrics_context

TOKEN_HEADER = "Lamina-Token"
"""Of the page. Proxies of the API server keep `Authorization` for themselves."""
MAX_STREAMS = 256
MAX_STREAMS_OF_ONE = 32
_FULL = CallerVerdict(503, f"{MAX_STREAMS} viewers look at this dashboard already; try again later")
_TOO_MANY = CallerVerdict(
    503, f"you have {MAX_STREAMS_OF_ONE} pages of this dashboard open, or others with your kind of token; close some"
)
_NOTHING_TO_SEE = CallerVerdict(503, "many viewers look at this dashboard, and you may list nothing; try again later")


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
        self._streams: Counter[str] = Counter()
        """By account."""
        self._idle_streams = 0
        """Of those who may list nothing."""
        self._shared = SharedEvents(board)
        self._views: dict[ViewerAccess, _View] = {}
        """Of one version, by what viewers may list."""

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
        view = await self._view(request)
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
        access = await self._viewers.access(token, _address(request), namespaces_of(self._board.current.document))
        if isinstance(access, CallerVerdict):
            return web.Response(status=access.status, text=access.reason, headers=HEADERS)

        async def may(namespace: str) -> bool:
            return await self._viewers.may_list_events(token, _address(request), namespace)

        return details_answer(await answer(access, may))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        view = await self._view(request)
        account = self._viewers.account(_token(request))
        if isinstance(view, _View):
            view = self._crowded(account, view.access) or view
        if isinstance(view, CallerVerdict):
            return web.Response(status=view.status, text=view.reason, headers=HEADERS)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        idle = view.access.nothing
        self._streams[account] += 1
        self._idle_streams += idle
        try:
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                await self._stream(request, response, view)
        finally:
            self._idle_streams -= idle
            self._streams[account] -= 1
            self._streams += Counter()  # drops accounts without any
        return response

    def _crowded(self, account: str, access: ViewerAccess) -> CallerVerdict | None:
        """Why there is no stream more for this account."""
        if self._streams.total() >= MAX_STREAMS:
            return _FULL
        if self._streams[account] >= MAX_STREAMS_OF_ONE:
            return _TOO_MANY
        return _NOTHING_TO_SEE if access.nothing and self._idle_streams >= MAX_STREAMS // 2 else None

    async def _stream(self, request: web.Request, response: web.StreamResponse, view: "_View | CallerVerdict") -> None:
        """Write until the board is closed or the API server does not accept the viewer any more. While it cannot be
        asked, nothing is written."""
        events = PageEvents(self._shared, request.query.get("view", ""))
        while view != UNKNOWN and not self._board.closed and request.transport is not None:
            if isinstance(view, _View):
                namespace = min(namespaces_of(view.posted.document), default="default")
                await response.write(events.next(view.posted, namespace, view.access))
            with contextlib.suppress(TimeoutError):
                await within(self._clock, BEAT_S, self._board.newer(events.version))
            view = await self._view(request)

    async def _view(self, request: web.Request) -> _View | CallerVerdict:
        """What the viewer sees, of one moment. Asking may take long, so what is posted meanwhile is not shown yet."""
        posted = self._board.current
        access = await self._viewers.access(_token(request), _address(request), namespaces_of(posted.document))
        if isinstance(access, CallerVerdict):
            return access
        known = self._views.get(access)
        if known is None or known.posted.version != posted.version:
            problem = posted.usage_problem if access.nodes else ""
            shown = posted._replace(document=visible(posted.document, access), usage_problem=problem)
            self._views = {key: view for key, view in self._views.items() if view.posted.version >= posted.version}
            self._views[access] = known = _View(shown, access)
        return known


def _token(request: web.Request) -> str:
    return bearer_token(request.headers.get("Authorization", "")) or request.headers.get(TOKEN_HEADER, "")


def _address(request: web.Request) -> str:
    return request.remote or ""


async def _alive(_: web.Request) -> web.Response:
    return web.Response()


async def _headed_file(request: web.Request) -> web.StreamResponse:
    response = await page_file(request)
    response.headers.update(HEADERS)
    return response
