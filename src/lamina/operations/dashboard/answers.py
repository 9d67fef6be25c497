"""What both servers of the page answer: its files, the headers of every answer, and events."""

from pathlib import Path

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


class PageEvents:
    """The events of one page. A page of a large cluster shows its nodes before it has the pods."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._sent: Posted | None = None
        self._attention: tuple[AttentionRow, ...] | None = None
        self._waiting: tuple[WaitingGroup, ...] | None = None
        self.version = -1
        """What the page has, as `Board.newer` counts."""

    def next(
        self, current: Posted, namespace: str, *, access: ViewerAccess = EVERYTHING, changed: bool = False
    ) -> bytes:
        """A server-sent event: `change` with what is new, or `beat` if nothing is. With `changed`, the version says
        nothing: the viewer may see something else than before."""
        if self.version == current.version and not changed:
            return b"event: beat\ndata: {}\n\n"
        sent, document = self._sent, current.document
        complete = sent is not None or len(document.pods) <= FIRST_PODS
        self._sent = shown = current if complete else current._replace(document=structs.replace(document, pods={}))
        self.version = current.version if complete else -1
        rows, groups = attention(document), waiting_groups(document.pods.items())
        body = {
            "first": sent is None,
            "complete": complete,
            "ready": current.ready,
            "lost": current.lost,
            "namespace": namespace,
            "nodes_hidden": not access.nodes,
            "usage_problem": current.usage_problem,
            "read_at": current.read_at,
            "allocation": seen_points(self._board.allocation.since(sent.allocation_at if sent else -1.0), access),
            "attention": rows if rows != self._attention else None,
            "waiting": groups if groups != self._waiting else None,
            "changes": changes(sent.document if sent else ClusterDocument(), shown.document),
        }
        self._attention, self._waiting = rows, groups
        return b"event: change\ndata: " + msgspec.json.encode(body) + b"\n\n"


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
