"""Reading what an API server answers: its errors become ours, one sentence each.

A proxy or another program may answer in its place, so nothing is taken for granted that is read here.
"""

import math
import re
from typing import Any, NamedTuple

import msgspec

from lamina.errors import Outside
from lamina.ports.kube.errors import AlreadyExists, Conflict, Gone, LacksRight, NotFound, NotLoggedIn, Refused
from lamina.ports.kube.protocol import Object, Watched

_BY_CODE: dict[int, type[Outside]] = {
    400: Refused,
    401: NotLoggedIn,
    403: Refused,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Refused,
}
_LACKS_RIGHT = re.compile(r'forbidden: User ".*" cannot [a-z]+ (resource|path) ')
"""What Kubernetes says where roles do not allow a request; quotas and admission refuse in other words."""
_WAIT_S, _MAX_WAIT_S = 1.0, 10.0
_MAX_REASON = 1000
"""Characters of the server's words. It repeats what it refuses, which may be large."""


class Page(NamedTuple):
    """A part of a list. `more` asks for the next part; empty for the last one."""

    items: list[Object]
    version: str
    more: str


def error_of(code: int, body: bytes, doing: str) -> Outside:
    """The error that an answer with this HTTP status means; the body is a Status object or plain text."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = body.decode(errors="replace")
    return _error(code, status, doing)


def object_of(body: bytes, doing: str) -> Object:
    """The object that `body` holds as JSON. Raises Outside where it holds something else, or is cut short."""
    return _checked(_decoded(body, doing), doing, "an object")


def page_of(listing: Object, doing: str) -> Page:
    """The items of a list. Raises Outside."""
    metadata = _checked(listing.get("metadata"), doing, "a list")
    items, version = listing.get("items") or [], metadata.get("resourceVersion")
    if not isinstance(items, list) or not isinstance(version, str):
        raise _unexpected(doing, "a list")
    return Page(items, version, metadata.get("continue") or "")


def watched_in(line: bytes, doing: str) -> Watched:
    """The event in a line of a watch. Raises the error that the server reports in it, or Outside."""
    event = _checked(_decoded(line, doing), doing, "an event")
    obj = _checked(event.get("object"), doing, "an event")
    if event.get("type") == "ERROR":
        code = obj.get("code")
        raise _error(code if isinstance(code, int) else 500, obj, doing)
    metadata = _checked(obj.get("metadata"), doing, "an event")
    if not isinstance(event.get("type"), str) or not isinstance(metadata.get("resourceVersion"), str):
        raise _unexpected(doing, "an event")
    return Watched(event["type"], obj)


def retry_after(header: str | None) -> float:
    """Seconds that a busy server asks to be left alone."""
    try:
        seconds = float(header or _WAIT_S)
    except ValueError:
        return _WAIT_S
    return _WAIT_S if math.isnan(seconds) else min(max(seconds, 0.0), _MAX_WAIT_S)


def _error(code: int, status: Any, doing: str) -> Outside:
    message, reason = status, None
    if isinstance(status, dict):
        message, reason = status.get("message") or "", status.get("reason")
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_CODE.get(code, Outside)
    written = " ".join(str(message).split())
    if kind is Refused and code == 403 and _LACKS_RIGHT.search(written):
        kind = LacksRight
    shown = written if len(written) <= _MAX_REASON else f"{written[:_MAX_REASON]}..."
    return kind(f"Kubernetes answered {code} to {doing}: {shown or 'without a reason'}")


def _decoded(body: bytes, doing: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Outside(f"Kubernetes answered {doing} with something that is not JSON: {error}") from error


def _checked(value: Any, doing: str, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unexpected(doing, what)
    return value


def _unexpected(doing: str, what: str) -> Outside:
    return Outside(f"Kubernetes answered {doing} with something that is not {what}")


def one_line(error: BaseException) -> str:
    """What `error` says, in one line; its name where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
