"""Floors and caps of GPU time: what containers get next to others that take whatever they can."""

from pathlib import Path
from typing import NamedTuple

from bench.compute.reactions import taken_back
from bench.compute.runs import Load, measure
from bench.machine import Bench
from bench.measures import Report
from lamina.core.grants import ComputePolicy

SETTLE_S = 24
"""How long shares have to learn from the driver how much longer kernels take next to others."""
SECONDS = 8
EARLY_S = 4


def _load(cores: int, most: int = 0, *, how: str = "async", processes: int = 1) -> Load:
    return Load(cores=cores, most=most, how=how, processes=processes, policy=ComputePolicy.WEIGHT)


NEXT_TO_GREEDY = {
    "20 next to 80": (_load(20), _load(80)),
    "70 next to 30 of 4 processes": (_load(70), _load(30, processes=4)),
    "50 next to 25 and 25": (_load(50), _load(25), _load(25)),
    "30 up to 50 next to 70": (_load(30, 50), _load(70)),
}
"""Containers that all want all of the GPU. Their floors add up to all of it."""
NEXT_TO_BORROWERS = {
    "20 up to 40 next to 30 up to 50": (_load(20, 40), _load(30, 50)),
    "10 up to 30 next to 20 up to 50": (_load(10, 30), _load(20, 50)),
}
"""Containers that borrow; the first has a cap that leaves time to the others."""
ALONE = (_load(20, 60), _load(10, 30), _load(40, 90))


def measure_compute(report: Report, bench: Bench, program: Path) -> None:
    """All measures of time, each with its null control."""
    short = [_short(bench, program, loads) for loads in NEXT_TO_GREEDY.values()]
    report.add("floor-short-early", "points", ours=max(early for early, _ in short))
    report.add("floor-short", "points", ours=max(settled for _, settled in short))
    _, without_limits = _short(bench, program, NEXT_TO_GREEDY["20 next to 80"], limited=False)
    report.control("floor-short", "points", ours=without_limits)
    report.add("cap-error", "points", ours=max(_cap_error(bench, program, load, load.most) for load in ALONE))
    report.control("cap-error", "points", ours=_cap_error(bench, program, _load(20), 60))
    report.add("cap-over", "points", ours=max(_over(bench, program, loads) for loads in NEXT_TO_BORROWERS.values()))
    without = (_load(20), NEXT_TO_BORROWERS["20 up to 40 next to 30 up to 50"][1])
    report.control("cap-over", "points", ours=_got(bench, program, without).settled[0] - 40)
    report.add("take-back", "ms", ours=sorted(taken_back(bench, program) for _ in range(3))[1])
    report.control("take-back", "ms", ours=taken_back(bench, program, limited=False))


class _Got(NamedTuple):
    """Percent of the GPU's time of each container: in the first seconds, and after it had time to settle."""

    early: list[float]
    settled: list[float]


def _got(bench: Bench, program: Path, loads: tuple[Load, ...], *, limited: bool = True) -> _Got:
    result = measure(bench, program, loads, seconds=SETTLE_S + SECONDS, limited=limited)
    containers = range(len(loads))
    early = [result.mean(number, end=EARLY_S) for number in containers]
    return _Got(early, [result.mean(number, begin=SETTLE_S) for number in containers])


def _short(bench: Bench, program: Path, loads: tuple[Load, ...], *, limited: bool = True) -> tuple[float, float]:
    """How far the container that lacks most is below its floor, in the first seconds and after it settled."""
    got = _got(bench, program, loads, limited=limited)
    print("floors", *(f"{load.cores}: {one:.1f}" for load, one in zip(loads, got.settled, strict=True)), flush=True)
    early, settled = (
        max(load.cores - one for load, one in zip(loads, part, strict=True)) for part in (got.early, got.settled)
    )
    return early, settled


def _cap_error(bench: Bench, program: Path, load: Load, cap: int) -> float:
    """How far a container on an idle GPU is from its cap."""
    (got,) = _got(bench, program, (load,)).settled
    print(f"cap {cap} alone: {got:.1f}", flush=True)
    return abs(got - cap)


def _over(bench: Bench, program: Path, loads: tuple[Load, ...]) -> float:
    """How far the container that exceeds its cap most is above it."""
    got = _got(bench, program, loads).settled
    print("caps", *(f"{load.most or 100}: {one:.1f}" for load, one in zip(loads, got, strict=True)), flush=True)
    return max(one - (load.most or 100) for load, one in zip(loads, got, strict=True))
