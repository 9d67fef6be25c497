"""What can be asked of a Prometheus. A question raises Outside where there is no answer that can be used."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from lamina.errors import BadInput


class Sample(NamedTuple):
    """What a series is now."""

    labels: Mapping[str, str]
    value: float


class Series(NamedTuple):
    """What a series was: moments in seconds since the epoch, in their order, with values that are numbers."""

    labels: Mapping[str, str]
    points: list[tuple[float, float]]


class Prometheus(Protocol):
    """One server."""

    async def query(self, query: str) -> list[Sample]:
        """What the query is now. Raises Outside."""
        ...

    async def query_range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        """What the query was from `start` to `end`, in seconds since the epoch, every `step` seconds. Raises
        Outside."""
        ...

    async def close(self) -> None: ...


def checked_address(text: str, *, where: str, example: str) -> str:
    """An address over HTTP, without a slash at its end. Raises BadInput."""
    try:
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text.rstrip("/")
    except ValueError:
        pass
    raise BadInput(f"{where} must be an address such as {example}, got {text!r}")


def in_label(value: str) -> str:
    """The value of a label as queries have it, between quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
