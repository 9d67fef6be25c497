"""What is remembered of granted and stranded GPU: a point for each change, and gaps where nothing is known."""

import msgspec

from lamina.operations.dashboard.document import ClusterFigures
from lamina.operations.dashboard.history import EVERY_S, MAX_ALLOCATION_POINTS, AllocationHistory


def figures(granted: int, stranded: int = 0) -> ClusterFigures:
    return ClusterFigures(memory_mib=200, granted_mib=granted, cores=400, granted_cores=granted, stranded_mib=stranded)


def test_points_are_percent_of_all_gpus() -> None:
    history = AllocationHistory()
    assert history.last_at == -1.0
    history.note(100.0, figures(50, 20))
    assert history.since(-1.0) == [(100.0, 25.0, 12.5, 10.0, None, None, None)]
    used = msgspec.structs.replace(figures(50), used_mib=30, busy_percent=7.5, cost_per_hour=1.25)
    history.note(200.0, used)
    assert history.since(100.0) == [(200.0, 25.0, 12.5, 0.0, 15.0, 1.25, 7.5)]


def test_a_part_of_what_is_used_is_a_gap() -> None:
    history = AllocationHistory()
    for now, missing in ((0.0, 0), (EVERY_S, 1), (2 * EVERY_S, 0)):
        history.note(now, msgspec.structs.replace(figures(50), used_mib=30 - 20 * missing, nodes_without_use=missing))
    assert [point.used for point in history.since(-1.0)] == [15.0, None, 15.0]


def test_a_point_is_added_for_what_differs_after_a_while() -> None:
    history = AllocationHistory()
    for now, granted in ((0.0, 0), (EVERY_S - 1, 10), (EVERY_S, 20), (3 * EVERY_S, 20), (4 * EVERY_S, 30)):
        history.note(now, figures(granted))
    assert [point.at for point in history.since(-1.0)] == [0.0, EVERY_S, 4 * EVERY_S]
    assert [point.memory for point in history.since(EVERY_S)] == [15.0]


def test_what_is_not_known_is_a_gap_also_soon_after_a_point() -> None:
    history = AllocationHistory()
    history.lose(0.0)
    assert history.since(-1.0) == []
    history.note(1.0, figures(10))
    history.lose(2.0)
    history.lose(3.0)
    history.note(4 * EVERY_S, figures(10))
    assert [point.memory for point in history.since(-1.0)] == [5.0, None, 5.0]


def test_a_clock_that_goes_back_adds_nothing() -> None:
    history = AllocationHistory()
    history.note(100.0, figures(10))
    history.note(50.0, figures(20))
    assert len(history.since(-1.0)) == 1


def test_an_empty_cluster_and_six_hours_are_bounded() -> None:
    history = AllocationHistory()
    history.note(0.0, ClusterFigures())
    assert [point[:4] for point in history.since(-1.0)] == [(0.0, 0.0, 0.0, 0.0)]
    for number in range(MAX_ALLOCATION_POINTS + 5):
        history.note((number + 1) * EVERY_S, figures(number % 100))
    assert len(history.since(-1.0)) == MAX_ALLOCATION_POINTS
