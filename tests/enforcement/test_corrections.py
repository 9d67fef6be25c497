"""The driver's figures correct what is estimated for containers that have work at the same time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.enforcement.claims import Confirmation
from lamina.enforcement.corrections import MOST, Corrections, WorkEstimate

MS, LOOK_MS = 1_000_000, 500
Rates = dict[str, tuple[float, float, float | None]]
"""Parts of the time by container: alone, estimated to have got next to others, and what the driver says."""


def learned(rates: Rates, *, looks: int = 20, owners: dict[str, str] | None = None, asks: bool = True) -> Corrections:
    """After so many figures of the driver."""
    corrections = Corrections()
    for ms in range(0, looks * LOOK_MS, 10):
        now = 1000 * MS + ms * MS
        asked_at = now - ms % LOOK_MS * MS if asks else 0
        corrections.observe(
            now,
            [
                WorkEstimate(
                    name,
                    alone * ms * MS,
                    shared * ms * MS,
                    Confirmation(1, work, asked_at, (owners or {}).get(name, "")),
                )
                for name, (alone, shared, work) in rates.items()
            ],
        )
    return corrections


def test_the_factors_are_what_the_driver_measures_over_what_was_estimated() -> None:
    found = learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)})
    assert found.known
    assert found.factors("a").shared == pytest.approx(1.4, abs=0.01)
    assert found.factors("b").shared == pytest.approx(0.6, abs=0.01)


def test_time_alone_is_taken_as_it_is() -> None:
    assert learned({"a": (0.3, 0.2, 0.4), "b": (0.1, 0.2, 0.4)}).factors("a").shared == pytest.approx(0.5, abs=0.02)


PARTS = st.floats(0.01, 1)


@given(PARTS, PARTS, PARTS, PARTS)
def test_what_is_charged_is_what_the_driver_measures_whatever_was_estimated(
    a: float, b: float, estimated_a: float, estimated_b: float
) -> None:
    """A neighbor that claims more or less changes what is estimated, and nothing else."""
    work_a, work_b = a / (a + b), b / (a + b)
    found = learned({"a": (0.0, estimated_a, work_a), "b": (0.0, estimated_b, work_b)})
    if found.known and found.factors("a").shared < MOST:
        assert found.factors("a").shared * estimated_a == pytest.approx(work_a, abs=0.02)


@pytest.mark.parametrize("work", [None, 0.0], ids=["not measured", "measured as none"])
def test_a_driver_that_does_not_measure_such_work_corrects_nothing(work: float | None) -> None:
    found = learned({"a": (0.0, 0.5, work), "b": (0.0, 0.5, work)})
    assert not found.known
    assert found.factors("a").shared == 1


def test_a_figure_without_a_time_corrects_nothing() -> None:
    assert not learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)}, asks=False).known


def test_containers_of_one_owner_have_one_figure_for_all_that_they_got() -> None:
    rates: Rates = {"a": (0.0, 0.2, 0.6), "b": (0.0, 0.3, 0.6), "c": (0.0, 0.5, 0.4)}
    found = learned(rates, owners={"a": "pod", "b": "pod"})
    assert found.factors("a").shared == found.factors("b").shared == pytest.approx(1.2, abs=0.01)
    assert found.factors("c").shared == pytest.approx(0.8, abs=0.01)


def test_before_the_driver_has_spoken_of_half_a_second_there_is_no_factor() -> None:
    assert not learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)}, looks=1).known


def test_who_seems_to_be_alone_while_another_hides_work_is_charged_what_the_driver_measures() -> None:
    found = learned({"a": (0.6, 0.0, 0.3), "b": (0.0, 0.0, 0.5)})
    assert found.factors("a").alone == pytest.approx(0.5, abs=0.02)


def test_time_alone_counts_in_full_where_no_one_hides_work() -> None:
    """The driver may measure less than for how long a program had work."""
    assert learned({"a": (0.6, 0.0, 0.5), "b": (0.3, 0.0, 0.3)}).factors("a").alone == 1
