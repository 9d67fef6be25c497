"""Reading what an API server answers: its errors become ours, one sentence each."""

from typing import Any

import msgspec

from lamina.errors import Outside
from lamina.ports.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Refused

_BY_CODE: dict[int, type[Outside]] = {
    400: Refused,
    401: Refused,
    403: Refused,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Refused,
}
_LONGEST_WAIT_S = 10.0


def error_of(code: int, body: bytes, doing: str) -> Outside:
    """The error that an answer with this HTTP status means; the body is a Status object or plain text."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = body.decode(errors="replace").strip()[:200]
    if isinstance(status, dict):
        message, reason = str(status.get("message") or ""), status.get("reason")
    else:
        message, reason = str(status), None
    kind = AlreadyExists if reason == "AlreadyExists" else _BY_CODE.get(code, Outside)
    return kind(f"Kubernetes answered {code} to {doing}: {message or 'without a reason'}")


def decoded(body: bytes, doing: str) -> Any:
    """The JSON of `body`. Raises Outside where it is none, or is cut short."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Outside(f"Kubernetes answered {doing} with something that is not JSON: {error}") from error


def retry_after(header: str | None) -> float:
    """Seconds that a busy server asks to be left alone."""
    try:
        return min(max(float(header or 1), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        return 1.0


def one_line(error: BaseException) -> str:
    """What `error` says, in one line; its name where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
