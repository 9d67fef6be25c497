"""What both servers of the page answer: its files, the headers of every answer, and events."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from aiohttp import web
from msgspec import structs

from lamina.operations.dashboard.attention import AttentionRow, WaitingGroup, attention, waiting_groups
from lamina.operations.dashboard.board import Board, Posted
from lamina.operations.dashboard.changes import changes
from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.viewers import EVERYTHING, ViewerAccess, seen_points

FIRST_PODS = 500
"""With more pods than these, a page gets them after everything else."""
MAX_MADE = 16
"""How many events of one moment are kept. The first one of a large cluster has megabytes."""
BEAT_S = 5.0
"""A page that hears nothing for three times as long counts the command as lost."""
_PAGE = Path(__file__).with_name("page")
_FILES = {path.relative_to(_PAGE).as_posix(): path for path in _PAGE.rglob("*") if path.is_file()}
_FILES[""] = _PAGE / "index.html"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class PageState(NamedTuple):
    """What a page was sent so far."""

    posted: Posted
    access: ViewerAccess
    attention: tuple[AttentionRow, ...]
    waiting: tuple[WaitingGroup, ...]
    complete: bool
    """Whether it has the pods too."""

    @property
    def key(self) -> tuple[int, bool, ViewerAccess]:
        """What all of it depends on."""
        return self.posted.version, self.complete, self.access


class SharedEvents:
    """The events of all pages of a board. Pages that have the same and may see the same get one event, made once."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._made: dict[tuple[object, ...], tuple[bytes, PageState]] = {}
        self._version = -1
        """The latest one, of which all events are."""

    def next(
        self, before: PageState | None, current: Posted, namespace: str, access: ViewerAccess
    ) -> tuple[bytes, PageState]:
        """The event that leads from one state to the next, and that one."""
        if current.version != self._version:
            self._made, self._version = {}, current.version
        key = before and before.key, namespace, access
        if key not in self._made:
            if len(self._made) == MAX_MADE:
                del self._made[next(iter(self._made))]
            self._made[key] = self._make(before, current, namespace, access)
        return self._made[key]

    def _make(
        self, before: PageState | None, current: Posted, namespace: str, access: ViewerAccess
    ) -> tuple[bytes, PageState]:
        document, sent = current.document, before.posted if before else None
        complete = before is not None or len(document.pods) <= FIRST_PODS
        shown = current if complete else current._replace(document=structs.replace(document, pods={}))
        after = PageState(shown, access, attention(document), waiting_groups(document.pods.items()), complete)
        body = {
            "first": before is None,
            "complete": complete,
            "ready": current.ready,
            "lost": current.lost,
            "namespace": namespace,
            "nodes_hidden": not access.nodes,
            "usage_problem": current.usage_problem,
            "read_at": current.read_at,
            "allocation": seen_points(self._board.allocation.since(sent.allocation_at if sent else -1.0), access),
            "attention": after.attention if before is None or after.attention != before.attention else None,
            "waiting": after.waiting if before is None or after.waiting != before.waiting else None,
            "changes": changes(sent.document if sent else ClusterDocument(), shown.document),
        }
        return b"event: change\ndata: " + msgspec.json.encode(body) + b"\n\n", after


class PageEvents:
    """The events of one page. A page of a large cluster shows its nodes before it has the pods."""

    def __init__(self, shared: SharedEvents) -> None:
        self._shared = shared
        self._state: PageState | None = None

    @property
    def version(self) -> int:
        """What the page has, as `Board.newer` counts."""
        return self._state.posted.version if self._state and self._state.complete else -1

    def next(self, current: Posted, namespace: str, access: ViewerAccess = EVERYTHING) -> bytes:
        """A server-sent event: `change` with what is new, or `beat` if nothing is, and the viewer may see the same."""
        if self._state and self.version == current.version and self._state.access == access:
            return b"event: beat\ndata: {}\n\n"
        event, self._state = self._shared.next(self._state, current, namespace, access)
        return event


def details_answer(found: object) -> web.Response:
    """What is known of a pod or GPU, as JSON. What a viewer may not see is answered like what does not exist."""
    if found is None:
        return web.Response(status=404, text="there is nothing with this name, or you may not list it", headers=HEADERS)
    return web.Response(body=msgspec.json.encode(found), content_type="application/json", headers=HEADERS)


async def page_file(request: web.Request) -> web.StreamResponse:
    path = _FILES.get(request.match_info["name"])
    if path is None:
        raise web.HTTPNotFound
    return web.FileResponse(path)
