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
"""With more pods than these, a page gets the figures of the cluster first, then what its view shows, then the rest."""
HOLDERS = 8
"""How many names have a color of their own."""
MAX_MADE = 16
"""How many events of one moment are kept. The first one of a large cluster has megabytes."""
BEAT_S = 5.0
"""A page that hears nothing for three times as long counts the command as lost."""
_PAGE = Path(__file__).with_name("page")
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_VIEWS_OF_PODS = ("pods", "pod")
_VIEWS_OF_NODES = ("map", "node", "gpu")
"""Which show nothing without nodes, so these come with the figures."""


def _page_files() -> dict[str, tuple[bytes, str]]:
    """The files with their types. The page names all of its modules, so that they are read at once, and not each after
    those that need it."""
    paths = {path.relative_to(_PAGE).as_posix(): path for path in sorted(_PAGE.rglob("*")) if path.is_file()}
    files = {name: (path.read_bytes(), _KINDS.get(path.suffix, "text/plain")) for name, path in paths.items()}
    modules = [name for name in files if name.endswith(".js") and not name.endswith(".iife.min.js")]
    links = "".join(f'  <link rel="modulepreload" href="{name}">\n' for name in modules)
    start, end = files["index.html"][0].split(b"</head>")
    files["index.html"] = files[""] = start + links.encode() + b"</head>" + end, "text/html"
    return files


_FILES = _page_files()
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Loaded(NamedTuple):
    """What a page has besides the figures of the cluster."""

    nodes: bool = False
    pods: bool = False


WHOLE = Loaded(nodes=True, pods=True)


class Summary(NamedTuple):
    """What the whole document says in short."""

    attention: tuple[AttentionRow, ...]
    waiting: tuple[WaitingGroup, ...]


class PageState(NamedTuple):
    """What a page was sent so far. `posted` has the document as the page has it."""

    posted: Posted
    access: ViewerAccess
    summary: Summary
    loaded: Loaded

    @property
    def key(self) -> tuple[int, Loaded, ViewerAccess]:
        """What all of it depends on."""
        return self.posted.version, self.loaded, self.access


class SharedEvents:
    """The events of all pages of a board. Pages that have the same and may see the same get one event, made once."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._made: dict[tuple[object, ...], tuple[bytes, PageState]] = {}
        self._version = -1
        """The latest one, of which all events are."""

    def next(
        self, before: PageState | None, loaded: Loaded, current: Posted, namespace: str, access: ViewerAccess
    ) -> tuple[bytes, PageState]:
        """The event that leads from one state to the next, in which this is loaded, and that one."""
        if current.version != self._version:
            self._made, self._version = {}, current.version
        key = before and before.key, loaded, namespace, access
        if key not in self._made:
            if len(self._made) == MAX_MADE:
                del self._made[next(iter(self._made))]
            self._made[key] = self._make(before, loaded, current, namespace, access)
        return self._made[key]

    def _make(
        self, before: PageState | None, loaded: Loaded, current: Posted, namespace: str, access: ViewerAccess
    ) -> tuple[bytes, PageState]:
        document, sent = current.document, before.posted if before else None
        same = before is not None and (before.posted.version, before.access) == (current.version, access)
        summary = before.summary if before and same else _summary(document)
        shown = structs.replace(
            document, nodes=document.nodes if loaded.nodes else {}, pods=document.pods if loaded.pods else {}
        )
        after = PageState(current._replace(document=shown), access, summary, loaded)
        old = before.summary if before else Summary((), ())
        body = {
            "first": before is None,
            "loaded": loaded._asdict(),
            "ready": current.ready,
            "lost": current.lost,
            "namespace": namespace,
            "nodes_hidden": not access.nodes,
            "usage_problem": current.usage_problem,
            "read_at": current.read_at,
            "allocation": seen_points(self._board.allocation.since(sent.allocation_at if sent else -1.0), access),
            "holders": _holders(document) if before is None else None,
            "attention": summary.attention if before is None or summary.attention != old.attention else None,
            "waiting": summary.waiting if before is None or summary.waiting != old.waiting else None,
            "changes": changes(sent.document if sent else ClusterDocument(), shown),
        }
        return b"event: change\ndata: " + msgspec.json.encode(body) + b"\n\n", after


def _summary(document: ClusterDocument) -> Summary:
    return Summary(attention(document), waiting_groups(document.pods.items()))


def _holders(document: ClusterDocument) -> list[str]:
    """The first namespaces that hold GPUs, so that each has its color on any view, whatever that is sent first."""
    names = {part.namespace for node in document.nodes.values() for gpu in node.gpus for part in gpu.parts}
    return sorted(names - {""})[:HOLDERS]


class PageEvents:
    """The events of one page. `view` is what it shows while it loads."""

    def __init__(self, shared: SharedEvents, view: str = "") -> None:
        self._shared = shared
        self._pods_first = view in _VIEWS_OF_PODS
        self._nodes_first = view in _VIEWS_OF_NODES
        self._state: PageState | None = None

    @property
    def version(self) -> int:
        """What the page has, as `Board.newer` counts."""
        return self._state.posted.version if self._state and self._state.loaded == WHOLE else -1

    def next(self, current: Posted, namespace: str, access: ViewerAccess = EVERYTHING) -> bytes:
        """A server-sent event: `change` with what is new, or `beat` if nothing is, and the viewer may see the same."""
        if self._state and self.version == current.version and self._state.access == access:
            return b"event: beat\ndata: {}\n\n"
        loaded = self._next_loaded(len(current.document.pods))
        event, self._state = self._shared.next(self._state, loaded, current, namespace, access)
        return event

    def _next_loaded(self, pods: int) -> Loaded:
        """What the page has after the next event. A small cluster comes as a whole."""
        if self._state is None:
            return Loaded(nodes=self._nodes_first) if pods > FIRST_PODS else WHOLE
        if self._state.loaded == Loaded():
            return Loaded(nodes=not self._pods_first, pods=self._pods_first)
        return WHOLE


def details_answer(found: object) -> web.Response:
    """What is known of a pod or GPU, as JSON. What a viewer may not see is answered like what does not exist."""
    if found is None:
        return web.Response(status=404, text="there is nothing with this name, or you may not list it", headers=HEADERS)
    return web.Response(body=msgspec.json.encode(found), content_type="application/json", headers=HEADERS)


async def page_file(request: web.Request) -> web.StreamResponse:
    found = _FILES.get(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    content, kind = found
    return web.Response(body=content, content_type=kind)
