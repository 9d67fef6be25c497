"""What this process has seen of the cluster over the last minutes and hours: use, allocation and health."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    GpuCard,
    HealthSpan,
    NodeCard,
    ShareCard,
)

MAX_USE_POINTS = 60
"""Of each share. With a reading every 5 seconds, these are 5 minutes."""
SPARSE_EVERY_S = 300
"""Of readings before these."""
EVERY_S = 10.0
"""The shortest time between two points."""
MAX_ALLOCATION_POINTS = 2160
"""Six hours of a cluster that changes all the time."""
KEPT_S = 6 * 3600
MAX_SPANS = 40
"""Of each GPU."""
HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"
NOT_READY = "its node is not ready"


class UsePoint(NamedTuple):
    """One reading of one share or one GPU, in seconds since the epoch. None is what was not known."""

    at: float
    used_mib: int | None
    busy_percent: int | None
    limit_mib: int | None = None
    peak_mib: int | None = None


_NOTHING = (None, None, None, None)
UsePoints = Mapping[str, list[UsePoint]]
"""Points in the order of time, by container and GPU with a space between them."""


class _Readings:
    """All of the last minutes, and few of the hours before."""

    def __init__(self) -> None:
        self.recent: deque[UsePoint] = deque(maxlen=MAX_USE_POINTS)
        self._before: deque[UsePoint] = deque(maxlen=KEPT_S // SPARSE_EVERY_S)

    def add(self, point: UsePoint) -> None:
        """Take in a point. Of those at which nothing is known, the first one after others ends their line."""
        if point.used_mib is None and point.busy_percent is None:
            if not self.recent or self.recent[-1][1:] == _NOTHING:
                return
            point = UsePoint(point.at, *_NOTHING)
        if len(self.recent) == MAX_USE_POINTS:
            leaving = self.recent[0]
            if not self._before or leaving.at - self._before[-1].at >= SPARSE_EVERY_S:
                self._before.append(leaving)
        self.recent.append(point)

    def all(self) -> list[UsePoint]:
        return [*self._before, *self.recent]


class UseHistory:
    """Readings of the shares and GPUs that exist. A clock that goes back adds none until it has caught up."""

    def __init__(self) -> None:
        self._last_at = -1.0
        self._shares: dict[str, dict[str, _Readings]] = {}
        self._gpus: dict[str, _Readings] = {}

    def note(self, now: float, document: ClusterDocument) -> None:
        """Take in what this document says of use, and forget shares and GPUs that it lacks."""
        if now <= self._last_at:
            return
        self._last_at = now
        before, self._shares = self._shares, {}
        for uid, card in document.pods.items():
            known = before.get(uid, {})
            if rows := {f"{row.container} {row.gpu}": row for row in card.shares}:
                self._shares[uid] = {key: _with_share(known.get(key), now, row) for key, row in rows.items()}
        gpus, self._gpus = self._gpus, {}
        for node in document.nodes.values():
            for gpu in node.gpus:
                self._gpus[gpu.uuid] = readings = gpus.get(gpu.uuid) or _Readings()
                readings.add(UsePoint(now, gpu.used_mib, gpu.busy_percent))

    def recent(self, uid: str) -> UsePoints:
        """The last minutes of the shares of a pod."""
        return {key: list(readings.recent) for key, readings in self._shares.get(uid, {}).items()}

    def of_pod(self, uid: str) -> UsePoints:
        """All that is kept of its shares."""
        return {key: readings.all() for key, readings in self._shares.get(uid, {}).items()}

    def of_gpu(self, uuid: str) -> list[UsePoint]:
        """All that is kept of what all processes on it use together."""
        return self._gpus[uuid].all() if uuid in self._gpus else []


def _with_share(readings: _Readings | None, now: float, row: ShareCard) -> _Readings:
    readings = readings or _Readings()
    limit = row.most_mib if row.limit_mib is None else row.limit_mib
    readings.add(UsePoint(now, row.used_mib, row.busy_percent, limit, row.peak_mib))
    return readings


class AllocationPoint(NamedTuple):
    """Percent of all GPUs from this moment on, in seconds since the epoch; None where nothing is known."""

    at: float
    memory: float | None
    compute: float | None
    stranded: float | None
    """Memory that is free on GPUs into which none of the pods of the cluster would fit."""
    used: float | None = None
    """Memory that processes use. A part of it is not known where that of a node is not."""
    cost_per_hour: float | None = None
    """Of what is granted, in the currency of the configuration."""
    busy: float | None = None
    """GPU time."""


class AllocationHistory:
    """Points in the order of time. A clock that goes back adds none until it has caught up."""

    def __init__(self) -> None:
        self._points: deque[AllocationPoint] = deque(maxlen=MAX_ALLOCATION_POINTS)

    @property
    def last_at(self) -> float:
        """The moment of the last point; -1 before the first."""
        return self._points[-1].at if self._points else -1.0

    def note(self, now: float, figures: ClusterFigures) -> None:
        """Take in what holds now, if it differs from the last point and that is old enough."""
        memory, cores = max(1, figures.memory_mib), max(1, figures.cores)
        point = AllocationPoint(
            now,
            round(100 * figures.granted_mib / memory, 2),
            round(100 * figures.granted_cores / cores, 2),
            round(100 * figures.stranded_mib / memory, 2),
            None
            if figures.used_mib is None or figures.nodes_without_use
            else round(100 * figures.used_mib / memory, 2),
            figures.cost_per_hour,
            figures.busy_percent,
        )
        self._add(point)

    def lose(self, now: float) -> None:
        """From now on nothing is known, until something is noted again."""
        if self._points:
            self._add(AllocationPoint(max(now, self.last_at + EVERY_S), None, None, None))

    def since(self, moment: float) -> list[AllocationPoint]:
        """The points after this moment."""
        return [point for point in self._points if point.at > moment]

    def _add(self, point: AllocationPoint) -> None:
        last = self._points[-1] if self._points else None
        if last is None or (point.at - last.at >= EVERY_S and last[1:] != point[1:]):
            self._points.append(point)


class HealthHistory:
    """Spans of the GPUs that exist, by UUID. A clock that goes back makes no span that does."""

    def __init__(self) -> None:
        self._spans: Mapping[str, tuple[HealthSpan, ...]] = {}

    def noted(self, now: float, document: ClusterDocument) -> ClusterDocument:
        """Take in what the document says of health now. Returns it with the spans of each GPU."""
        spans: dict[str, tuple[HealthSpan, ...]] = {}

        def card(node: NodeCard, gpu: GpuCard) -> GpuCard:
            spans[gpu.uuid] = _with_span(self._spans.get(gpu.uuid, ()), int(now), *_state(node, gpu))
            return msgspec.structs.replace(gpu, health=spans[gpu.uuid])

        nodes = {
            name: msgspec.structs.replace(node, gpus=tuple(card(node, gpu) for gpu in node.gpus))
            for name, node in document.nodes.items()
        }
        self._spans = spans
        return msgspec.structs.replace(document, nodes=nodes)

    def lose(self, now: float, reason: str) -> None:
        """From now on nothing is known, until something is noted again."""
        self._spans = {uuid: _with_span(spans, int(now), UNKNOWN, reason) for uuid, spans in self._spans.items()}


def _state(node: NodeCard, gpu: GpuCard) -> tuple[str, str]:
    if not gpu.healthy:
        return UNHEALTHY, gpu.reason
    return (HEALTHY, "") if node.ready else (UNKNOWN, NOT_READY)


def _with_span(spans: tuple[HealthSpan, ...], now: int, state: str, reason: str) -> tuple[HealthSpan, ...]:
    if not spans or (spans[-1].state, spans[-1].reason) != (state, reason):
        spans = (*spans, HealthSpan(max(now, spans[-1].since) if spans else now, state, reason))
    # A span that ended before is of no interest: the next one has begun by then.
    ended = sum(after.since < now - KEPT_S for after in spans[1:])
    return spans[max(ended, len(spans) - MAX_SPANS) :]
