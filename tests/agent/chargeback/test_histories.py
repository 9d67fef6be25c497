"""Peaks and percentiles of what containers use, in a bounded time and space."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.agent.chargeback.histories import WINDOW_S, ContainerHistory, Histories, HistoryKey, MomentaryUse

KEY = HistoryKey("a", "Deployment", "web", "main")


def observed(*uses: tuple[int | None, float | None], histories: Histories | None = None, at: float = 0) -> Histories:
    """A tick of 10 seconds for each use: bytes and percent."""
    histories = histories or Histories()
    for number, (memory, percent) in enumerate(uses):
        histories.observe([MomentaryUse(KEY, memory, percent)], passed_s=10, now=at + 10 * number)
    return histories


def only(histories: Histories) -> ContainerHistory:
    [history] = histories.state
    return history


def test_the_peak_is_the_most_that_one_container_had() -> None:
    assert only(observed((5, None), (9, None), (None, None), (3, None))).memory_peak == 9


@pytest.mark.parametrize(("part", "percent"), [(0.0, 5), (0.5, 5), (0.89, 50), (0.9, 50), (0.99, 100), (1.0, 100)])
def test_percentiles_are_upper_bounds(part: float, percent: float) -> None:
    history = only(observed(*[(0, 0.0)] * 5, *[(0, 46.0)] * 4, (0, 250.0)))
    assert history.compute_percent(part) == percent


@pytest.mark.parametrize(("percent", "bound"), [(-3, 5), (0, 5), (5, 5), (5.1, 10), (99, 100), (100, 100)])
def test_each_percentage_is_in_its_bucket(percent: float, bound: float) -> None:
    assert only(observed((0, percent))).compute_percent(0.5) == bound


def test_what_is_not_known_has_no_percentile() -> None:
    history = only(observed((7, None)))
    assert history.compute_percent(0.5) is None and history.observed_s == 0


def test_time_has_a_bound_and_never_goes_back() -> None:
    histories = Histories()
    for passed in (-5.0, 1e9):
        histories.observe([MomentaryUse(KEY, 1, 50)], passed_s=passed, now=1)
    assert only(histories).observed_s == 60


def test_what_was_used_long_ago_is_forgotten() -> None:
    histories = observed((9, 100.0))
    for half in (1, 2, 3):
        observed((5, 0.0), histories=histories, at=half * WINDOW_S / 2)
    assert only(histories).memory_peak == 9
    observed((5, 0.0), histories=histories, at=2 * WINDOW_S)
    assert only(histories).memory_peak == 5 and only(histories).compute_percent(1) == 5
    histories.observe([], passed_s=10, now=4 * WINDOW_S)
    assert histories.state == ()


def test_a_clock_that_goes_back_keeps_what_is_known() -> None:
    histories = observed((9, 10.0), at=1e6)
    observed((5, 10.0), histories=histories, at=10)
    assert only(histories).memory_peak == 9 and only(histories).observed_s == 20


def test_there_are_never_more_than_most() -> None:
    histories = Histories(most=2)
    for number in range(5):
        key = KEY._replace(workload=f"w{number}")
        histories.observe([MomentaryUse(key, 1, 1)], passed_s=10, now=number)
    assert [each.key.workload for each in histories.state] == ["w3", "w4"]
    together = [MomentaryUse(KEY._replace(workload=f"x{number}"), 1, 1) for number in range(5)]
    histories.observe(together, passed_s=10, now=9)
    assert len(histories.state) == 2


@given(st.lists(st.tuples(st.integers(0, 1 << 60), st.floats(0, 100)), min_size=1, max_size=30))
def test_a_history_survives_the_disk_and_is_ordered(uses: list[tuple[int, float]]) -> None:
    history = only(observed(*uses))
    assert msgspec.json.decode(msgspec.json.encode(history), type=ContainerHistory) == history
    assert history.memory_peak == max(memory for memory, _ in uses)
    found = [history.compute_percent(part) or 0 for part in (0.1, 0.5, 0.99, 1)]
    assert found == sorted(found) and found[-1] >= max(percent for _, percent in uses) - 1e-9
