"""The tree does not grow without a word: each number of `budgets.txt` holds."""

import pytest

from tests.house import budgets


@pytest.mark.parametrize("what", budgets.measured())
def test_the_house_stays_within_its_budget(what: str) -> None:
    bound, number = budgets.bounds()[what], budgets.measured()[what]
    assert budgets.tightest(what, bound, number) == number, (
        f"{what}: {number}, and tests/house/budgets.txt allows {bound}; make it smaller, or say there why it grows"
    )


def test_every_bound_bounds_something() -> None:
    assert budgets.bounds().keys() == budgets.measured().keys()
