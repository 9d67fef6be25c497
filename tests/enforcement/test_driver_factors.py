"""The driver's figures correct what is estimated for containers that have work at the same time."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.enforcement.driver_factors import DOUBT, MAX_FACTOR, DriverFactors, WorkEstimate
from lamina.enforcement.driver_figures import Confirmation

MS, LOOK_MS, SAMPLE_MS = 1_000_000, 500, 200
Rates = dict[str, tuple[float, float, float | None]]
"""Parts of the time by container: alone, estimated to have got next to others, and what the driver says."""


def learned(rates: Rates, *, looks: int = 20, owners: dict[str, str] | None = None, asks: bool = True) -> DriverFactors:
    """After so many figures of the driver."""
    factors = DriverFactors()
    for ms in range(0, looks * LOOK_MS, 10):
        now = 1000 * MS + ms * MS
        asked_at = now - ms % LOOK_MS * MS if asks else 0
        factors.observe(
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
    return factors


def averaged(
    rates: Rates, *, owners: dict[str, str] | None = None, looks: int = 600, every: int = 1, together: bool = False
) -> DriverFactors:
    """After so many figures that are right on average. That of `a` jumps by 40 percent up and down, and others' do the
    reverse, or the same `together` with it; `every` so many figures."""
    factors, owner = DriverFactors(), owners or {}
    for look in range(looks):
        now = (1000 + look * LOOK_MS) * MS
        jump = 0.2 * (-1) ** (look // every)
        estimates = []
        for name, (alone, shared, work) in rates.items():
            own = jump if together or owner.get(name, name) == owner.get("a", "a") else -jump
            said = Confirmation(1, None if work is None else work + own, now, owner.get(name, ""))
            estimates.append(WorkEstimate(name, alone * look * LOOK_MS * MS, shared * look * LOOK_MS * MS, said))
        factors.observe(now, estimates)
    return factors


def sampled(parts: dict[str, float], estimated: dict[str, float], seconds: int, seed: int) -> list[dict[str, float]]:
    """The factors, every second, by `watched`."""
    names = list(parts)
    return [{name: each.factors(name).shared for name in names} for each in watched(parts, estimated, seconds, seed)]


def watched(parts: dict[str, float], estimated: dict[str, float], seconds: int, seed: int) -> Iterator[DriverFactors]:
    """Every second, under a driver that gives all of each 200 ms to one process, by chance, as an H200's
    does. A figure is the average of the last six."""
    random, factors = Random(seed), DriverFactors()
    samples: list[str] = []
    said: dict[str, Confirmation] = {}
    for ms in range(0, seconds * 1000, 100):
        now = 1000 * MS + ms * MS
        if ms % SAMPLE_MS == 0:
            samples.extend(random.choices(list(parts), list(parts.values())))
        if ms % LOOK_MS == 0:
            said = {name: Confirmation(1, samples[-6:].count(name) / len(samples[-6:]), now) for name in parts}
        factors.observe(now, [WorkEstimate(name, 0.0, estimated[name] * ms * MS, said[name]) for name in parts])
        if ms % 1000 == 0:
            yield factors


@pytest.mark.parametrize("parts", [{"a": 0.3, "b": 0.7}, {"a": 0.5, "b": 0.5}, dict.fromkeys("abcd", 0.25)])
def test_chance_in_the_driver_s_samples_corrects_nothing(parts: dict[str, float]) -> None:
    """Ten minutes, ten times over: on average, what a container is charged is within 2 percent of what it got."""
    runs = [sampled(parts, parts, 600, seed) for seed in range(10)]
    off = [abs(factor - 1) for run in runs for factors in run for factor in factors.values()]
    assert sum(off) / len(off) < 0.02


@pytest.mark.parametrize("parts", [{"a": 0.1, "b": 0.9}, {"a": 0.5, "b": 0.5}, dict.fromkeys("abcd", 0.25)])
def test_samples_are_recognized(parts: dict[str, float]) -> None:
    """After at most five seconds, for nearly all of ten minutes."""
    measured = [each.measured for seed in range(10) for each in watched(parts, parts, 600, seed)]
    assert sum(measured) / len(measured) < 0.05


def test_a_wrong_estimate_is_corrected_from_samples() -> None:
    """Nearly all of it within a minute."""
    runs = [sampled({"a": 0.3, "b": 0.7}, {"a": 0.5, "b": 0.5}, 600, seed) for seed in range(10)]
    for second in (60, 599):
        assert sum(run[second]["a"] for run in runs) / len(runs) == pytest.approx(0.6, abs=0.05)


def with_a_new_neighbor() -> DriverFactors:
    """Of `a`, first next to `b`, for which estimates are wrong, and then next to `c`."""
    factors = learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)})
    for ms in range(20 * LOOK_MS, 23 * LOOK_MS, 10):
        now = 1000 * MS + ms * MS
        said = Confirmation(1, 0.5, now - ms % LOOK_MS * MS)
        factors.observe(now, [WorkEstimate(name, 0.0, 0.5 * ms * MS, said) for name in ("a", "c")])
    return factors


def test_a_new_neighbor_s_figures_begin_anew() -> None:
    """What was learned next to others says nothing of it."""
    assert with_a_new_neighbor().factors("a").shared == 1


def test_the_factors_are_what_the_driver_says_over_what_was_estimated() -> None:
    found = averaged({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)})
    assert found.sampled and not found.measured
    assert found.factors("a").shared == pytest.approx(1.4, abs=0.01)
    assert found.factors("b").shared == pytest.approx(0.6, abs=0.01)


def test_figures_that_jump_together_are_no_samples() -> None:
    """Of samples that one container gets, others get none."""
    assert not averaged({"a": (0.0, 0.5, 0.5), "b": (0.0, 0.5, 0.5)}, together=True).sampled


def test_a_jump_now_and_then_is_no_sample() -> None:
    """Every half a minute, for five."""
    assert not averaged({"a": (0.0, 0.5, 0.5), "b": (0.0, 0.5, 0.5)}, every=60).sampled


def test_no_factor_is_larger_than_what_a_wrong_estimate_explains() -> None:
    assert averaged({"a": (0.0, 0.1, 0.7), "b": (0.0, 0.9, 0.3)}).factors("a").shared == MAX_FACTOR


@pytest.mark.parametrize(("work", "factor"), [(0.58, 1.0), (0.42, 1.0), (0.7, 1.4), (0.3, 0.6)])
def test_a_difference_that_may_be_the_bias_of_samples_corrects_nothing(work: float, factor: float) -> None:
    runs = [sampled({"a": work, "b": 1 - work}, {"a": 0.5, "b": 0.5}, 900, seed) for seed in range(10)]
    assert sum(run[-1]["a"] for run in runs) / len(runs) == pytest.approx(factor, abs=0.06)


@pytest.mark.parametrize("work", [0.5, 0.6, 0.7, 0.1])
def test_measured_work_makes_no_factors(work: float) -> None:
    """The account is reconciled with it."""
    found = learned({"a": (0.0, 0.5, work), "b": (0.0, 0.5, 1 - work)})
    assert found.measured
    assert found.factors("a").shared == found.factors("b").shared == 1


@pytest.mark.parametrize(("work", "wrong"), [(0.5, False), (0.6, False), (0.4, False), (0.7, True), (0.3, True)])
def test_large_differences_of_measured_work_show_that_estimates_are_wrong(work: float, wrong: bool) -> None:
    """Then the arbiter makes others."""
    assert learned({"a": (0.0, 0.5, work), "b": (0.0, 0.5, 1 - work)}).wrong == wrong


@pytest.mark.parametrize("parts", [{"a": 0.3, "b": 0.7}, {"a": 0.5, "b": 0.5}, dict.fromkeys("abcd", 0.25)])
def test_samples_do_not_make_estimates_wrong(parts: dict[str, float]) -> None:
    wrong = [each.wrong for seed in range(10) for each in watched(parts, parts, 600, seed)]
    assert sum(wrong) / len(wrong) < 0.01


def test_estimates_are_not_wrong_for_a_new_neighbor() -> None:
    assert not with_a_new_neighbor().wrong


def test_work_that_comes_and_goes_is_not_taken_for_samples() -> None:
    """What the driver says jumps, and so does what was estimated."""
    factors, done = DriverFactors(), 0.0
    for ms in range(0, 60_000, 10):
        now, working = 1000 * MS + ms * MS, ms % 4000 < 2000
        if ms % LOOK_MS == 0:
            worked = min(1.0, ms % 4000 / 1000) if working else max(0.0, 1 - (ms % 4000 - 2000) / 1000)
            said, nothing = Confirmation(1, worked, now), Confirmation(1, 0.0, now)
        factors.observe(now, [WorkEstimate("a", done * MS, 0.0, said), WorkEstimate("b", 0.0, 0.0, nothing)])
        done += 10 * working
    assert factors.measured and not factors.sampled


def test_time_alone_is_taken_as_it_is() -> None:
    assert averaged({"a": (0.3, 0.3, 0.4), "b": (0.1, 0.2, 0.4)}).factors("a").shared == pytest.approx(0.33, abs=0.02)


PARTS = st.floats(0.01, 1)


@given(PARTS, PARTS, PARTS, PARTS)
def test_what_is_charged_is_what_the_driver_says_whatever_was_estimated(
    a: float, b: float, estimated_a: float, estimated_b: float
) -> None:
    """A neighbor that claims more or less changes what is estimated, and nothing else."""
    work_a, work_b = a / (a + b), b / (a + b)
    found = averaged({"a": (0.0, estimated_a, work_a), "b": (0.0, estimated_b, work_b)})
    large = max(abs(work_a - estimated_a), abs(work_b - estimated_b)) > DOUBT
    if large and found.sampled and found.factors("a").shared < MAX_FACTOR:
        assert found.factors("a").shared * estimated_a == pytest.approx(work_a, abs=0.02)


@pytest.mark.parametrize("work", [None, 0.0], ids=["not measured", "measured as none"])
def test_a_driver_that_does_not_measure_such_work_corrects_nothing(work: float | None) -> None:
    found = learned({"a": (0.0, 0.5, work), "b": (0.0, 0.5, work)})
    assert not found.measured
    assert found.factors("a").shared == 1


def test_a_figure_without_a_time_corrects_nothing() -> None:
    assert not learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)}, asks=False).measured


def test_containers_of_one_owner_have_one_figure_for_all_that_they_got() -> None:
    rates: Rates = {"a": (0.0, 0.2, 0.7), "b": (0.0, 0.3, 0.7), "c": (0.0, 0.5, 0.3)}
    found = averaged(rates, owners={"a": "pod", "b": "pod"})
    assert found.factors("a").shared == found.factors("b").shared == pytest.approx(1.4, abs=0.01)
    assert found.factors("c").shared == pytest.approx(0.6, abs=0.01)


def test_before_the_driver_has_spoken_of_half_a_second_there_is_no_factor() -> None:
    assert not learned({"a": (0.0, 0.5, 0.7), "b": (0.0, 0.5, 0.3)}, looks=1).measured


def test_who_seems_to_be_alone_while_another_hides_work_is_charged_what_the_driver_measures() -> None:
    found = learned({"a": (0.6, 0.0, 0.3), "b": (0.0, 0.0, 0.5)})
    assert found.factors("a").alone == pytest.approx(0.5, abs=0.02)


def test_time_alone_counts_in_full_where_no_one_hides_work() -> None:
    """The driver may measure less than for how long a program had work."""
    assert learned({"a": (0.6, 0.0, 0.5), "b": (0.3, 0.0, 0.3)}).factors("a").alone == 1
