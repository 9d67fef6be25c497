"""The benchmark of elastic shares measures what it says, and each of its floors has a control that breaks it."""

import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.compute.reactions import closed_and_opened, first_second
from bench.compute.runs import Load, started
from bench.elastic import resizing
from bench.elastic.compute import ALONE, NEXT_TO_BORROWERS, NEXT_TO_GREEDY
from bench.machine import MIB, Bench, build, machine
from bench.measures import FLOORS, Report
from lamina.enforcement import read_limits
from lamina.enforcement.files import LIMITS


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with machine() as made:
        yield made


@pytest.mark.parametrize("loads", [*NEXT_TO_GREEDY.values(), *NEXT_TO_BORROWERS.values(), *[(load,) for load in ALONE]])
def test_floors_fit_on_a_gpu_and_caps_are_above_them(loads: tuple[Load, ...]) -> None:
    assert sum(load.cores for load in loads) <= 100
    assert all(not load.most or load.cores < load.most < 100 for load in loads)


def test_a_resize_reaches_the_container_that_works(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder), "load")
        with started(bench, program, (Load(cores=20, most=50),)) as groups:
            container = resizing.newest_container(bench)
            groups[0][0].say("go")
            resizing.resize(container, 5000)
            (device,) = read_limits(container / LIMITS).devices
    assert (device.memory_bytes, device.cores_percent, device.most_percent) == (5000 * MIB, 20, 50)


def test_floors_hold_at_their_numbers_and_break_beyond() -> None:
    report = Report("elastic")
    names = set(tomllib.loads(FLOORS.read_text())["elastic"])
    assert {"floor-short", "cap-error", "cap-over", "take-back", "resize-call", "resize-work"} <= names
    for name, kept, broken in (("floor-short", 2.0, 2.1), ("cap-error", 2.0, 2.1), ("cap-over", 2.0, 2.1)):
        assert report.add(name, "points", ours=kept).ok and not report.add(name, "points", ours=broken).ok
    assert report.add("take-back", "ms", ours=100.0).ok and report.control("take-back", "ms", ours=101.0).ok


MS = 1_000_000


def test_the_second_begins_when_the_share_first_gets_time() -> None:
    before, first, later = (0, (0, 0)), (400 * MS, (400 * MS, 1)), (1400 * MS, (700 * MS, 700 * MS))
    assert first_second([before, first, later, (1500 * MS, (800 * MS, 800 * MS))], 1) == (first, later)


@pytest.mark.parametrize(
    "seen",
    [
        [],
        [(0, (0, 0))],
        [(0, (0, 0)), (1100 * MS, (1100 * MS, 0))],  # it has not begun
        [(0, (0, 0)), (400 * MS, (400 * MS, 1)), (1399 * MS, (700 * MS, 700 * MS))],
    ],
)
def test_a_second_that_is_not_over_is_not_judged(seen: list[tuple[int, tuple[int, ...]]]) -> None:
    assert first_second(seen, 1) is None


def test_a_reaction_without_work_on_both_sides_is_an_error_and_no_figure() -> None:
    worked = [(0, (0, 0)), (10 * MS, (5 * MS, 0)), (20 * MS, (5 * MS, 5 * MS)), (30 * MS, (6 * MS, 9 * MS))]
    ended = [(40 * MS, (6 * MS, 9 * MS)), (50 * MS, (6 * MS, 10 * MS)), (57 * MS, (7 * MS, 10 * MS))]
    assert closed_and_opened(worked, ended) == (10.0, 7.0)
    for during, after in ((worked[:2], ended), (worked, ended[:2])):
        with pytest.raises(RuntimeError, match="cannot be measured"):
            closed_and_opened(during, after)
