"""The pure parts of `python -m bench.latency`, and one run."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from bench.latency.cells import LOADS, PLAIN, REQUESTS_MS, TRAINS_MS, Cell, cells, chosen, crowded, goals, modes
from bench.latency.figures import Served, compared, served
from bench.latency.runs import Runs

MS = 1_000_000


def written(folder: Path, rows: Sequence[tuple[int, int, int]]) -> Path:
    file = folder / "results"
    file.write_bytes(b"".join(struct.pack("=3Q", *(ms * MS for ms in row)) for row in rows))
    return file


def test_service_begins_with_the_request_and_the_total_when_it_comes(tmp_path: Path) -> None:
    found = served([0, 10 * MS], written(tmp_path, [(0, 1, 5), (10, 12, 20)]), 100 * MS, speed=0.5)
    assert found == Served(came=2, done=2, service_ms=(8.0, 8.0, 8.0), total_ms=(10.0, 10.0, 10.0), speed=0.5)


def test_a_request_that_is_not_done_has_taken_the_time_until_the_end(tmp_path: Path) -> None:
    rows = [(0, 0, 4), (10, 10, 120)]
    found = served([0, 10 * MS, 50 * MS], written(tmp_path, rows), 100 * MS, speed=0)
    assert (found.came, found.done) == (3, 1)
    assert found.total_ms == (50.0, 90.0, 90.0)
    assert found.service_ms == (4.0, 4.0, 4.0)


def test_a_request_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    file = written(tmp_path, [(0, 0, 4), (10, 10, 14)])
    file.write_bytes(file.read_bytes()[:-1])
    assert served([0, 10 * MS], file, 20 * MS, speed=0).done == 1


def test_without_any_request_done_service_has_taken_until_the_end(tmp_path: Path) -> None:
    found = served([10 * MS], written(tmp_path, []), 40 * MS, speed=0)
    assert found.service_ms == found.total_ms == (30.0, 30.0, 30.0)


def test_a_run_is_compared_with_the_same_requests_alone() -> None:
    alone = Served(came=1, done=1, service_ms=(4.0, 4.0, 5.0), total_ms=(4.0, 8.0, 10.0))
    run = Served(came=1, done=1, service_ms=(6.0, 8.0, 10.0), total_ms=(8.0, 8.0, 40.0), speed=0.3)
    found = compared(run, alone, 0.6)
    assert (found.service, found.total, found.speed) == ((1.5, 2.0, 2.0), (2.0, 1.0, 4.0), 0.5)
    assert found.p99 == 2.0


@pytest.mark.parametrize("cell", chosen(97), ids=lambda cell: cell.name)
def test_requests_come_at_random_and_need_their_part_of_the_gpu(cell: Cell) -> None:
    moments = cell.moments()
    assert moments == sorted(moments) == cell.moments()
    assert 0 <= moments[0] <= moments[-1] < cell.seconds
    assert cell.work_ms == pytest.approx(cell.request_ms, rel=0.2)
    assert len(moments) * cell.work_ms / 1000 / cell.seconds == pytest.approx(cell.load, rel=4 / len(moments) ** 0.5)


def test_few_cells_have_each_value() -> None:
    few = chosen(200)
    assert len(few) == -(-len(cells()) // 200)
    assert {cell.request_ms for cell in few} == set(REQUESTS_MS)
    assert {cell.train_ms for cell in few} == set(TRAINS_MS)
    assert {cell.load for cell in few} == set(LOADS)


def test_a_crowd_differs_from_the_goals_by_its_number_alone() -> None:
    found = {(cell.neighbors, cell.load) for cell in crowded()}
    assert found == {(2, 0.1), (2, 0.5), (4, 0.1), (4, 0.5)}
    assert all(structs.replace(cell, neighbors=1) in goals() for cell in crowded())


@pytest.mark.parametrize("neighbors", [1, 2, 4])
def test_no_mode_grants_more_than_the_gpu(neighbors: int) -> None:
    for mode in modes(neighbors):
        if mode.request is not None and mode.neighbor is not None:
            assert mode.request.get("cores", 0) + neighbors * mode.neighbor.get("cores", 0) <= 100
        if mode.mps:
            assert mode.mps[0] + neighbors * mode.mps[1] <= 100


def test_plain_time_slicing_makes_a_request_wait_for_turns_of_its_neighbor(tmp_path: Path) -> None:
    """A request of 4 ms has a part of two turns of 2.37 ms at least; the facade without limits changes nothing."""
    (cell,) = (each for each in goals() if each.load == 0.1 and each.neighbor.kernel_ms == 1.0)
    runs, short = Runs(tmp_path), structs.replace(cell, request_ms=4.0)
    plain, free = (runs.compare(short, mode) for mode in (PLAIN, next(modes(1))))
    assert 1.5 < plain.p99 < 3
    assert free.p99 == pytest.approx(plain.p99, rel=0.02)
    assert runs.alone(short).service_ms[1] == pytest.approx(4.0, rel=0.02)
    assert 0.8 < plain.speed < 1


@pytest.mark.parametrize("load", [0.1, 0.5])
def test_a_share_of_compute_cuts_no_request_in_pieces(load: float, tmp_path: Path) -> None:
    """Next to training no request takes longer than by plain time slicing, if no time is lost."""
    (cell,) = (each for each in goals() if each.load == load and each.neighbor.kernel_ms == 1.0)
    runs = Runs(tmp_path, hurry=8)
    plain = runs.compare(cell, PLAIN)
    for mode in modes(1):
        if mode.name in ("cap", "weight", "request-limit"):
            assert runs.compare(cell, mode).p99 < 1.05 * plain.p99, mode.name
