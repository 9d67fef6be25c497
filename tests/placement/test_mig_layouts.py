"""MIG instances: every choice is a legal place, and wastes are what a person counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.mig import MigCard
from lamina.core.mig_cards import MIG_CARDS
from lamina.placement.mig.layouts import Layouts

A100, A30 = MIG_CARDS["A100-40GB"], MIG_CARDS["A30-24GB"]


@settings(max_examples=200)
@given(card=st.sampled_from((A100, A30)), data=st.data())
def test_an_instance_gets_a_free_place_exactly_when_there_is_one(card: MigCard, data: st.DataObject) -> None:
    names = [profile.name for profile in card.profiles]
    mix = data.draw(st.dictionaries(st.sampled_from(names), st.floats(0.01, 9)))
    layouts = np.array(data.draw(st.lists(st.integers(0, (1 << card.slices) - 1), min_size=1, max_size=5)))
    profile = card.profile(data.draw(st.sampled_from(names)))
    found = Layouts(card, mix).best(layouts, profile.name)
    assert (found is not None) == any(not mask & layout for mask in profile.masks for layout in layouts.tolist())
    if found is not None:
        gpu, start = found
        assert start in profile.starts
        assert not int(layouts[gpu]) & (((1 << profile.size) - 1) << start)


def test_wastes_are_free_slices_that_the_mix_cannot_use() -> None:
    layouts = Layouts(A100, {"3g.20gb": 1, "1g.5gb": 1})
    assert layouts.waste[0] == 0.5, "seven of eight slices serve 1g.5gb, all serve 3g.20gb"
    assert layouts.waste[0b0000_0001] == 0.5 * 3 + 0.5 * 1
    assert layouts.waste[0b1111_1111] == 0
    assert layouts.waste[0b0111_1111] == 1


@pytest.mark.parametrize(
    ("in_use", "profile", "wanted"),
    [
        ([0b0000_0000, 0b0000_1111], "1g.5gb", (1, 6)),
        ([0b0000_0000], "1g.5gb", (0, 6)),
        ([0b0000_0000], "3g.20gb", (0, 4)),
        ([0b1111_1111], "1g.5gb", None),
    ],
    ids=["on the begun card", "next to what no other takes", "leaves the place of 4g", "full"],
)
def test_small_instances_leave_the_places_of_large_ones(
    in_use: list[int], profile: str, wanted: tuple[int, int] | None
) -> None:
    layouts = Layouts(A100, {"1g.5gb": 2, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 2, "7g.40gb": 1})
    assert layouts.best(np.array(in_use), profile) == wanted


def test_without_a_mix_the_fullest_card_comes_first() -> None:
    assert Layouts(A100, {}).best(np.array([0, 0b11, 0b1]), "2g.10gb") == (1, 2)
