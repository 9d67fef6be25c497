"""How fast gates close and open for priority, and how fast a share comes back that was lent."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from bench.compute.runs import Load, given, started
from bench.machine import Bench, Worker
from bench.measures import Report
from lamina.core.grants import ComputePolicy

PAUSE_S = 0.003
_SECOND_NS = 1_000_000_000
_PATIENCE_S = 6.0
"""How long the GPU is watched until what is looked for was seen: a program on a busy machine may begin late."""
_NOT_MEASURED = "the reaction cannot be measured"
Seen = tuple[int, tuple[int, ...]]


def measure(report: Report, bench: Bench, program: Path) -> None:
    """All reactions, each the median of three."""
    closes, opens = zip(*(_priority(bench, program) for _ in range(3)), strict=True)
    report.add("priority-closes", "ms", ours=sorted(closes)[1])
    report.add("priority-opens", "ms", ours=sorted(opens)[1])
    report.add("weight-back", "ms", ours=sorted(taken_back(bench, program) for _ in range(3))[1])


def _watch(
    bench: Bench,
    groups: Sequence[Sequence[Worker]],
    seconds: float,
    until: Callable[[list[Seen]], bool] = lambda seen: True,
) -> list[Seen]:
    """The GPU time given to each, again and again: for so long, and for some seconds more until this was seen."""
    seen: list[Seen] = []
    begun = time.monotonic()
    end, patience = begun + seconds / bench.hurry, begun + _PATIENCE_S
    while (now := time.monotonic()) < end or (not until(seen) and now < patience):
        seen.append(given(bench, groups))
        time.sleep(PAUSE_S)
    return seen


def _moments(seen: Sequence[Seen], container: int) -> list[int]:
    """When it was found to have got more."""
    return [after[0] for before, after in pairwise(seen) if after[1][container] > before[1][container]]


def _priority(bench: Bench, program: Path) -> tuple[float, float]:
    """From the first work of the higher priority to the last of the lower, and from the last of the higher to the first
    of the lower, in ms."""
    low, high = Load(cores=0, how="async", priority=1), Load(cores=0, priority=0)
    with started(bench, program, (low, high)) as groups:
        groups[0][0].say("go")
        _watch(bench, groups, 0.5)
        groups[1][0].say("go")
        during = _watch(bench, groups, 0.7, lambda seen: bool(_moments(seen, 0) and _moments(seen, 1)))
        groups[1][0].finish()
        after = _watch(bench, groups, 0.7, lambda seen: bool(_opened(seen)[1]))
    return closed_and_opened(during, after)


def closed_and_opened(during: Sequence[Seen], after: Sequence[Seen]) -> tuple[float, float]:
    """The two times of `_priority`, from what was seen while the higher priority worked, and after it had ended."""
    low, high = _moments(during, 0), _moments(during, 1)
    if not low or not high:
        raise RuntimeError(f"{_NOT_MEASURED}: both containers have to work at first, and one got no GPU time")
    begins, (last, opened) = high[0], _opened(after)
    if not opened:
        raise RuntimeError(f"{_NOT_MEASURED}: the lower priority got no GPU time again")
    closed = max(moment for moment in low if moment >= begins or moment == low[0])
    return max(0, closed - begins) / 1e6, (opened[0] - last) / 1e6


def _opened(after: Sequence[Seen]) -> tuple[int, list[int]]:
    """When the higher priority got time last, and when the lower one did after that."""
    last = max(_moments(after, 1), default=after[0][0])
    return last, [moment for moment in _moments(after, 0) if moment > last]


def taken_back(bench: Bench, program: Path, *, limited: bool = True) -> float:
    """What a share of 70 that was lent lacks, in ms, in the first second after it is wanted, of the time that the GPU
    worked. Without `limited` nothing is held."""
    small, large = (Load(cores=cores, how="async", policy=ComputePolicy.WEIGHT) for cores in (30, 70))
    with started(bench, program, (small, large), limited=limited) as groups:
        groups[0][0].say("go")
        _watch(bench, groups, 1.5)
        groups[1][0].say("go")
        second_ns = _SECOND_NS // bench.hurry
        seen = _watch(bench, groups, 1.1, lambda seen: first_second(seen, 1, second_ns) is not None)
        if (second := first_second(seen, 1, second_ns)) is not None:
            begin, end = second
            got = [after - before for before, after in zip(begin[1], end[1], strict=True)]
            return (0.7 * sum(got) - got[1]) / 1e6
    raise RuntimeError(f"{_NOT_MEASURED}: a share that was lent got no GPU time, or for less than a second")


def first_second(seen: Sequence[Seen], container: int, second_ns: int = _SECOND_NS) -> tuple[Seen, Seen] | None:
    """What was seen when the container first got GPU time, and a second later; None if that is not over yet."""
    moments = _moments(seen, container)
    since = [one for one in seen if moments and one[0] >= moments[0]]
    return next(((since[0], one) for one in since if one[0] >= since[0][0] + second_ns), None)
