"""Neighbors of a container whose work comes first, in virtual time: what it leaves them, and what it owes them."""

from pathlib import Path

import pytest

from bench.compute.driver_figures import Averages
from bench.compute.runs import Load
from bench.compute.virtual import Container, Together, VirtualClock, build_clock
from bench.latency.runs import LOW_PRIORITY_PERCENT
from bench.machine import build, machine
from lamina.core.grants import ComputePolicy

S = 1_000_000_000
TRAINING = Load(cores=0, how="async")


def requests(folder: Path, moments: list[int], kernels: int) -> tuple[str | Path, ...]:
    """The command of a server whose requests, trains of kernels of 0.1 ms, come at these moments in ns."""
    arrivals = folder / "arrivals"
    arrivals.write_bytes(b"".join(moment.to_bytes(8, "little") for moment in moments))
    return build(folder, "requests"), arrivals, folder / "results", str(kernels), "100000"


def percents(
    folder: Path, server: tuple[str | Path, ...], shares: tuple[int, int], begin_s: int, end_s: int
) -> list[float]:
    """What the server, whose work comes first, and a training get of the GPU's time between two moments. `shares` are
    weights in percent."""
    weights = [{"cores": cores, "policy": ComputePolicy.WEIGHT} for cores in shares]
    containers = [
        Container(command=server, limits={"priority": 0} | weights[0]),
        Container(command=(build(folder, "load"), *TRAINING.arguments), limits={"priority": 1} | weights[1]),
    ]
    clock = build_clock(folder)
    with (
        machine(time_slice_us=2000) as bench,
        Together(
            bench, VirtualClock(clock, bench.folder), containers, low_priority_percent=LOW_PRIORITY_PERCENT
        ) as together,
    ):
        together.begin(Averages)
        start = together.clock.now()
        together.pass_until(start + begin_s * S)
        before = together.given()
        together.pass_until(start + end_s * S)
        return [100 * (after - b) / ((end_s - begin_s) * S) for b, after in zip(before, together.given(), strict=True)]


@pytest.mark.parametrize("how", ["async", "loop", "sync"])
def test_one_that_never_pauses_gets_its_weight(how: str, tmp_path: Path) -> None:
    """And no more than that, after some seconds in which it came first."""
    server = (build(tmp_path, "load"), *Load(cores=0, how=how).arguments)
    first, training = percents(tmp_path, server, (60, 40), 14, 20)
    assert training == pytest.approx(40, abs=4), first


def test_one_that_never_pauses_comes_first_for_some_seconds(tmp_path: Path) -> None:
    server = (build(tmp_path, "load"), *Load(cores=0, how="async").arguments)
    _, training = percents(tmp_path, server, (60, 40), 1, 6)
    assert training < 10


def test_a_neighbor_has_all_of_the_gpu_when_there_was_no_request_for_long(tmp_path: Path) -> None:
    moments = [number * S // 100 for number in range(200)]
    _, training = percents(tmp_path, requests(tmp_path, moments, 40), (50, 50), 13, 17)
    assert training > 97
