"""What both servers of the page answer: its files, the headers of every answer, and events."""

from pathlib import Path

import msgspec
from aiohttp import web

from lamina.operations.dashboard.board import Board, Posted
from lamina.operations.dashboard.changes import changes
from lamina.operations.dashboard.document import ClusterDocument

BEAT_S = 5.0
"""A page that hears nothing for three times as long counts the command as lost."""
_PAGE = Path(__file__).with_name("page")
_SCRIPTS = (
    "page.js", "events.js", "elements.js", "order.js", "patches.js", "filling.js", "figures.js", "nodes.js",
    "health.js", "pods.js", "mine.js", "chart.js", "details.js", "allocation.js", "whatif.js", "replay.js",
)  # fmt: skip
_FILES = {
    "": "index.html",
    **{name: name for name in ("style.css", "icon.svg", *_SCRIPTS)},
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def event(sent: Posted | None, current: Posted, board: Board, namespace: str, *, nodes_hidden: bool = False) -> bytes:
    """A server-sent event: `change` with what is new since `sent`, or `beat` if nothing is. Of the history, only pods
    in the document are sent."""
    if sent is not None and sent.version == current.version:
        return b"event: beat\ndata: {}\n\n"
    before = sent.document if sent else ClusterDocument()
    use = board.history.since(sent.read_at if sent else 0.0)
    body = {
        "first": sent is None,
        "ready": current.ready,
        "lost": current.lost,
        "namespace": namespace,
        "nodes_hidden": nodes_hidden,
        "usage_problem": current.usage_problem,
        "read_at": current.read_at,
        "allocation": [] if nodes_hidden else board.allocation.since(sent.allocation_at if sent else -1.0),
        "use": {uid: points for uid, points in use.items() if uid in current.document.pods},
        "changes": changes(before, current.document),
    }
    return b"event: change\ndata: " + msgspec.json.encode(body) + b"\n\n"


async def page_file(request: web.Request) -> web.StreamResponse:
    name = _FILES.get(request.match_info["name"])
    if name is None:
        raise web.HTTPNotFound
    return web.FileResponse(_PAGE / name)
