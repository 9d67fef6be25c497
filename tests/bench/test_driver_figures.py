"""What the driver says of containers in virtual time: right averages, and samples as an H200 takes them."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pytest

from bench.compute.driver_figures import Averages, Figures, Samples

TICK_NS = 10_000_000
FOLDERS = (Path("a"), Path("b"), Path("c"))


def answers(figures: Figures, parts: Sequence[float], seconds: float) -> list[tuple[float, ...]]:
    """What is said of each container at the end of each second, if each has this part of the time all along."""
    driver, said = figures(FOLDERS), []
    for tick in range(round(seconds * 100) + 1):
        now = tick * TICK_NS
        driver.look(now, [round(part * now) for part in parts])
        if tick and tick % 100 == 0:
            found = [driver.confirmation(folder, "GPU-1") for folder in FOLDERS]
            assert None not in found
            said.append(tuple(each.work or 0.0 for each in found if each is not None))
    return said


def test_averages_are_right() -> None:
    assert answers(Averages, (0.3, 0.5, 0.0), 5) == [(0.3, 0.5, 0.0)] * 5


def test_all_of_a_sample_is_given_to_one_container() -> None:
    """Of five in a second, each container has a whole number."""
    for said in answers(Samples, (0.3, 0.5, 0.0), 20):
        assert sum(said) == pytest.approx(0.8, abs=0.02) and said[2] == 0
        assert all(min(abs(each - 0.16 * count) for count in range(6)) < 0.006 for each in said), said


def test_samples_are_right_in_the_long_run_and_jump_before() -> None:
    said = answers(Samples, (0.4, 0.4, 0.0), 600)
    assert mean(each[0] for each in said) == pytest.approx(0.4, abs=0.03)
    assert {0.16, 0.64} <= {each[0] for each in said}, "20 and 80 percent of what is used"


@pytest.mark.parametrize("figures", [Averages, Samples])
def test_containers_that_do_nothing_had_nothing(figures: Figures) -> None:
    assert answers(figures, (0.0, 0.0, 0.0), 2) == [(0.0, 0.0, 0.0)] * 2


def test_samples_are_the_same_in_each_run() -> None:
    assert answers(Samples, (0.4, 0.4, 0.1), 10) == answers(Samples, (0.4, 0.4, 0.1), 10)
