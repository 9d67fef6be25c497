"""What pods and GPUs did over the last hours: from a Prometheus where one is named, else what this process has seen."""

import asyncio
from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from lamina.core.quantities import MIB
from lamina.errors import Outside
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import PodCard
from lamina.operations.dashboard.history import KEPT_S, UsePoint, UsePoints
from lamina.operations.dashboard.holders import HeldSpan, holders_of
from lamina.ports.clock import Clock, within
from lamina.ports.prometheus import HttpPrometheus, Prometheus, Series, checked_address, in_label

STEP_S = 60
TIMEOUT_S = 5.0
"""For all questions about one pod or GPU together."""
MAX_SERIES = 256
_MAX_BYTES = 16 * 2**20
"""Of one answer."""
_MAX_MIB = 1 << 30
_MAX_PERCENT = 1000.0
SEEN, PROMETHEUS = "page", "prometheus"


class PodPast(Struct, frozen=True, kw_only=True):
    """Points by container and GPU. `problem` says why they are not those of Prometheus."""

    source: str
    problem: str = ""
    shares: UsePoints = {}


class GpuPast(Struct, frozen=True, kw_only=True):
    """What all processes on a GPU used, and who held what of it."""

    source: str
    problem: str = ""
    points: list[UsePoint] = []
    holders: list[HeldSpan] = []


def prometheus_at(address: str) -> Prometheus:
    """The Prometheus at an address. Raises BadInput for one that is none."""
    checked = checked_address(address, where="--prometheus", example="http://127.0.0.1:9090")
    return HttpPrometheus(checked, timeout_s=TIMEOUT_S, max_bytes=_MAX_BYTES)


class Past:
    """Of the pods and GPUs of a board."""

    def __init__(self, board: Board, clock: Clock, prometheus: Prometheus | None = None) -> None:
        self._board = board
        self._clock = clock
        self._prometheus = prometheus

    async def pod(self, uid: str, card: PodCard) -> PodPast:
        """Of a pod of the document."""
        seen = PodPast(source=SEEN, shares=self._board.history.of_pod(uid))
        if self._prometheus is None:
            return seen
        try:
            shares = await within(self._clock, TIMEOUT_S, self._asked_of_pod(self._prometheus, card))
        except (Outside, TimeoutError) as error:
            return structs.replace(seen, problem=_problem(error))
        return PodPast(source=PROMETHEUS, shares=shares) if shares else seen

    async def gpu(self, uuid: str) -> GpuPast:
        """Of a GPU of the document."""
        history, holders = self._board.history.of_gpu(uuid), self._board.holders.of_gpu(uuid)
        seen = GpuPast(source=SEEN, points=history, holders=holders)
        if self._prometheus is None:
            return seen
        try:
            found = await within(self._clock, TIMEOUT_S, self._asked_of_gpu(self._prometheus, uuid))
        except (Outside, TimeoutError) as error:
            return structs.replace(seen, problem=_problem(error))
        return found if found.points or found.holders else seen

    async def _asked_of_pod(self, prometheus: Prometheus, card: PodCard) -> UsePoints:
        of = f"{{namespace={in_label(card.namespace)},pod={in_label(card.name)}}}"
        start, end = self._times(card.created)
        by = "by (container, gpu)"
        used, busy, limit, peak = await _all(
            prometheus, start, end,
            f"sum {by} (lamina_container_memory_used_bytes{of})",
            f"max {by} (lamina_container_utilization_percent{of})",
            f"max {by} (lamina_container_memory_limit_bytes{of})",
            f"max {by} (lamina_container_memory_peak_bytes{of})",
        )  # fmt: skip
        keys = {_share(each) for series in (used, busy) for each in series}
        figures = [_figures(series, as_mib=series is not busy) for series in (used, busy, limit, peak)]
        return {key: _points(*(figure.get(key, {}) for figure in figures)) for key in sorted(keys)}

    async def _asked_of_gpu(self, prometheus: Prometheus, uuid: str) -> GpuPast:
        of, (start, end) = f"{{gpu={in_label(uuid)}}}", self._times(None)
        used, busy, held = await _all(
            prometheus, start, end,
            f"max (lamina_gpu_memory_used_bytes{of})",
            f"max (lamina_gpu_utilization_percent{of})",
            f"sum by (namespace, pod) (lamina_container_memory_limit_bytes{of})",
        )  # fmt: skip
        figures = [_figures(series, as_mib=series is not busy) for series in (used, busy)]
        pods = self._board.current.document.pods.items()
        uids = {f"{card.namespace}/{card.name}": uid for uid, card in pods}
        by_pod = {
            (each.labels.get("namespace", ""), each.labels.get("pod", "")): [
                (at, _mib(value)) for at, value in each.points
            ]
            for each in held
        }
        holders = [_lasting(each, end) for each in holders_of(by_pod, uids, 3 * STEP_S)]
        of_all, busy_of_all = (figure.get(_NO_SHARE, {}) for figure in figures)
        points = _points(of_all, busy_of_all, {}, {})
        return GpuPast(source=PROMETHEUS, points=points, holders=holders)

    def _times(self, since: int | None) -> tuple[float, float]:
        """The last hours, not before a moment, in whole steps so that neighbors ask the same."""
        end = float(int(self._clock.wall()) // STEP_S * STEP_S)
        return max(end - KEPT_S, float(since or 0) // STEP_S * STEP_S), end


_NO_SHARE = " "


async def _all(prometheus: Prometheus, start: float, end: float, *queries: str) -> list[list[Series]]:
    if start > end:
        return [[] for _ in queries]
    found = await asyncio.gather(*(prometheus.query_range(query, start, end, STEP_S) for query in queries))
    if any(len(series) > MAX_SERIES for series in found):
        raise Outside(f"it has more than {MAX_SERIES} series for one pod or GPU")
    return list(found)


def _share(series: Series) -> str:
    return f"{series.labels.get('container', '')} {series.labels.get('gpu', '')}"


def _figures(series: Iterable[Series], *, as_mib: bool) -> dict[str, dict[float, int]]:
    """Values by share and moment. Raises Outside for what no GPU can be."""
    convert = _mib if as_mib else _busy
    return {_share(each): {moment: convert(value) for moment, value in each.points} for each in series}


def _mib(value: float) -> int:
    if not 0 <= value <= _MAX_MIB * MIB:
        raise Outside(f"it says that {value:g} bytes of a GPU are in use")
    return int(value) // MIB


def _busy(value: float) -> int:
    if not 0 <= value <= _MAX_PERCENT:
        raise Outside(f"it says that a GPU is busy {value:g} % of the time")
    return round(value)


def _points(
    used: Mapping[float, int], busy: Mapping[float, int], limit: Mapping[float, int], peak: Mapping[float, int]
) -> list[UsePoint]:
    return [UsePoint(at, used.get(at), busy.get(at), limit.get(at), peak.get(at)) for at in sorted({*used, *busy})]


def _lasting(holder: HeldSpan, end: float) -> HeldSpan:
    """The holder, which lasts if it was there at the last reading."""
    until = holder.until if holder.until is not None and holder.until < end - STEP_S else None
    return structs.replace(holder, until=until)


def _problem(error: Exception) -> str:
    reason = str(error) or f"it has not answered within {TIMEOUT_S:.0f} s"
    return f"Prometheus cannot be used for the history, so this is what the dashboard has seen itself: {reason}"
