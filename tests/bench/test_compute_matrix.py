"""The matrix of conditions has what it must have, and tells limits that are held from others."""

from itertools import combinations_with_replacement, product

import pytest

from bench.compute.conditions import Alone
from bench.compute.matrix import KERNELS_MS, SLICES_US, WAYS, Cell, cells, errors, kept, switching
from bench.compute.runs import Load


def test_each_pair_of_kernels_meets_at_each_length_of_time_slices() -> None:
    seen = {
        (cell.slice_us, tuple(sorted(load.kernel_ms for load in cell.loads)), tuple(load.cores for load in cell.loads))
        for cell in cells()
    }
    for slice_us, pair in product(SLICES_US, combinations_with_replacement(KERNELS_MS, 2)):
        assert (slice_us, pair, (50, 50)) in seen
        assert (slice_us, pair, (30, 60)) in seen
    assert {len(kernels) for _, kernels, _ in seen} == {2, 3, 4}
    assert {cores for _, kernels, cores in seen if len(kernels) == 4} == {(25, 25, 25, 25)}


def test_each_way_to_launch_meets_each_kernel_at_each_length_of_time_slices() -> None:
    seen = {(cell.slice_us, load.how, load.kernel_ms) for cell in cells() for load in cell.loads}
    assert seen == set(product(SLICES_US, WAYS, KERNELS_MS))


def test_no_set_of_shares_is_more_than_the_gpu() -> None:
    assert all(sum(load.cores for load in cell.loads) <= 100 for cell in cells())


def test_each_pair_of_short_kernels_meets_where_time_is_lost_between_processes() -> None:
    short = [ms for ms in KERNELS_MS if ms <= 0.1]
    seen = {
        (tuple(sorted(load.kernel_ms for load in cell.loads)), tuple(load.cores for load in cell.loads))
        for cell in switching()
    }
    for pair in combinations_with_replacement(short, 2):
        assert {(pair, (50, 50)), (pair, (30, 60))} <= seen
    assert all(cell.switch_us for cell in switching())


PAIR = Cell(slice_us=2000, loads=(Load(cores=30), Load(cores=60)))


@pytest.mark.parametrize(
    ("got", "held"),
    [
        ((30.0, 60.0), True),
        ((33.0, 55.0), True),
        ((33.1, 60.0), False),
        ((30.0, 54.9), False),
        ((24.9, 60.0), False),
    ],
)
def test_a_cap_is_exceeded_by_3_points_at_most_and_a_share_short_by_5(got: tuple[float, float], held: bool) -> None:
    assert kept(errors(PAIR, got, (100, 100))) is held


def test_time_that_a_loop_leaves_unused_when_it_is_alone_is_not_missed() -> None:
    assert errors(PAIR, (25.0, 60.0), (80, 100)) == pytest.approx([0, 0])
    assert errors(PAIR, (15.0, 60.0), (80, 100)) == pytest.approx([-5, 0])


def test_what_a_loop_gets_alone_is_measured_once_and_with_kernels_of_10_ms_at_most() -> None:
    measured: list[Load] = []

    def measure(load: Load) -> float:
        measured.append(load)
        return 90 + load.kernel_ms

    alone = Alone(measure)
    assert [alone(Load(cores=50, kernel_ms=ms)) for ms in (1.0, 100.0, 10.0, 1.0)] == [91, 100, 100, 91]
    assert alone(Load(cores=30, how="sync", kernel_ms=100.0)) == 100
    assert [(load.how, load.kernel_ms) for load in measured] == [("loop", 1), ("loop", 10), ("sync", 10)]
