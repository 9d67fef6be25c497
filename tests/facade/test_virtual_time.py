"""Limits next to other containers, in virtual time: the shipped facade, driver and arbiter.

`python -m bench.compute virtual` has all conditions.
"""

from collections.abc import Callable
from typing import Any

import pytest

from bench.compute import virtual
from bench.compute.matrix import (
    H200_SLICE_US,
    H200_SWITCH_US,
    Cell,
    cells,
    errors,
    kept,
    known_failures,
    switching,
)  # fmt: skip
from bench.compute.runs import Load
from bench.machine import build
from lamina.enforcement.driver_charges import DriverCharges

ALONE = 100.0
FEW = cells()[5::64]
HARD = [
    each
    for each in cells()
    if (each.slice_us, *((load.how, load.kernel_ms) for load in each.loads))
    in (
        (200, ("graph", 10.0), ("copies", 0.1)),
        (30000, ("loop", 10.0), ("sync", 0.1)),
        (30000, ("graph", 100.0), ("copies", 10.0)),
    )
]
"""Cells in which what is computed is the most wrong: accounts have to be reconciled with the driver."""
SWITCHING = switching()[::8]
"""On a GPU that loses time when it changes between processes."""
ON_THE_CPU = Cell(
    slice_us=H200_SLICE_US,
    switch_us=H200_SWITCH_US,
    loads=tuple(Load(cores=50, how="pauses", kernel_ms=0.1) for _ in range(2)),
)
"""Programs that compute on the CPU between two kernels."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[float]]:
    folder = tmp_path_factory.mktemp("virtual")
    library, program = virtual.build_clock(folder), build(folder, "load")

    def measure(cell: Cell, **how: Any) -> list[float]:
        got = virtual.measure(library, program, cell, settle_s=8, seconds=6, **how)
        return errors(cell, got, [ALONE] * len(cell.loads))

    return measure


@pytest.mark.parametrize("cell", known_failures() + FEW + HARD + SWITCHING, ids=lambda cell: cell.name)
def test_limits_hold_whatever_the_length_of_time_slices(cell: Cell, measured: Callable[..., list[float]]) -> None:
    assert kept(found := measured(cell)), found


def test_they_do_not_where_the_length_is_assumed(measured: Callable[..., list[float]]) -> None:
    """The null control."""
    assert not kept(measured(known_failures()[0], figures=None))


def test_they_do_not_where_accounts_are_not_reconciled(
    measured: Callable[..., list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The null control."""
    monkeypatch.setattr(DriverCharges, "charged", lambda self, name: 0.0)
    assert not all(kept(measured(cell)) for cell in HARD)


def test_they_do_not_without_limits(measured: Callable[..., list[float]]) -> None:
    """The null control."""
    assert not kept(measured(Cell(slice_us=500, loads=known_failures()[1].loads), limited=False))


@pytest.mark.parametrize("cell", SWITCHING, ids=lambda cell: cell.name)
def test_they_do_not_without_launch_windows(cell: Cell, measured: Callable[..., list[float]]) -> None:
    """The null control."""
    assert not kept(measured(cell, ignoring=range(len(cell.loads))))


def test_who_ignores_its_launch_windows_takes_little_from_its_neighbor(measured: Callable[..., list[float]]) -> None:
    """Compared with what the neighbor gets without windows. They end when they do not help."""
    loads = (Load(cores=30, kernel_ms=0.1), Load(cores=60, how="sync", kernel_ms=0.02))
    cell = Cell(slice_us=H200_SLICE_US, switch_us=H200_SWITCH_US, loads=loads)
    without = measured(cell, ignoring=[0, 1])
    for greedy in (0, 1):
        assert measured(cell, ignoring=[greedy])[1 - greedy] > without[1 - greedy] - 6, greedy


def test_programs_that_compute_on_the_cpu_overlap_as_without_limits(measured: Callable[..., list[float]]) -> None:
    """But for the moments in which windows are tried."""
    assert measured(ON_THE_CPU) == pytest.approx(measured(ON_THE_CPU, limited=False), abs=2)


def test_a_run_in_virtual_time_is_repeatable(measured: Callable[..., list[float]]) -> None:
    cell = known_failures()[2]
    assert measured(cell) == pytest.approx(measured(cell), abs=0.5)


def test_time_slices_are_as_long_as_the_machine_says(measured: Callable[..., list[float]]) -> None:
    """Without limits, short work next to long work gets the less, the longer the slices are."""
    loads = (Load(cores=50, how="sync", kernel_ms=0.1), Load(cores=50, kernel_ms=10.0))
    short = [measured(Cell(slice_us=us, loads=loads), limited=False)[0] for us in (200, 1000, 5000, 30000)]
    assert short == sorted(short, reverse=True)
    assert short[0] > -25 and short[-1] < -45
