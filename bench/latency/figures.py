"""Percentiles of requests, and how they compare with those alone. Pure."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

PERCENTILES = (50.0, 99.0, 99.9)
_RECORD = 24
"""Bytes of a request in the file."""


class Served(Struct, frozen=True, kw_only=True):
    """What became of the requests of a run. Times are ms, by percentile: of service, from the moment that a request
    begins, and of all, from the moment that it comes. `speed` is what the neighbors got of the GPU's time."""

    came: int
    done: int
    service_ms: tuple[float, ...]
    total_ms: tuple[float, ...]
    speed: float = 0.0


def served(moments: Sequence[int], results: Path, end: int, speed: float) -> Served:
    """From when requests came until `end`, and the file of native/bench/requests.c. One that is not done has taken at
    least the time until the end."""
    written = results.read_bytes()
    rows = (
        np.frombuffer(written[: len(written) // _RECORD * _RECORD], dtype=np.uint64).astype(np.float64).reshape(-1, 3)
    )
    rows = rows[rows[:, 2] <= end]
    open_ = np.array(moments[len(rows) :], dtype=np.float64)
    total = np.concatenate((rows[:, 2] - rows[:, 0], end - open_))
    service = rows[:, 2] - rows[:, 1] if len(rows) else total
    return Served(
        came=len(moments), done=len(rows), service_ms=_percentiles(service), total_ms=_percentiles(total), speed=speed
    )


def _percentiles(times: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float, ...]:
    return tuple(float(np.percentile(times, each, method="higher")) / 1e6 for each in PERCENTILES)


class Compared(Struct, frozen=True, kw_only=True):
    """A run over the same requests alone, by percentile, and the neighbors' speed over theirs alone."""

    service: tuple[float, ...]
    total: tuple[float, ...]
    speed: float

    @property
    def p99(self) -> float:
        return self.service[1]


def compared(run: Served, alone: Served, neighbor_alone: float) -> Compared:
    return Compared(
        service=tuple(a / b for a, b in zip(run.service_ms, alone.service_ms, strict=True)),
        total=tuple(a / b for a, b in zip(run.total_ms, alone.total_ms, strict=True)),
        speed=run.speed / neighbor_alone,
    )
