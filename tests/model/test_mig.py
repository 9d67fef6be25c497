"""MIG cards: the counts that NVIDIA's tables give, and no layout beyond the card."""

import pytest

from lamina.model.mig import MIG_CARDS, MigCard

CARDS = list(MIG_CARDS.values())


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.model)
def test_every_place_lies_on_the_card(card: MigCard) -> None:
    for profile in card.profiles:
        assert all(mask < 1 << card.slices and mask.bit_count() == profile.size for mask in profile.masks)
        assert len(set(profile.starts)) == len(profile.starts)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("A100-40GB", {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1}),
        ("H200-141GB", {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1}),
        ("A30-24GB", {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1}),
    ],
)
def test_as_many_of_each_profile_fit_as_the_driver_says(model: str, most: dict[str, int]) -> None:
    found = {}
    for profile in MIG_CARDS[model].profiles:
        used = count = 0
        for mask in profile.masks:
            if not mask & used:
                used, count = used | mask, count + 1
        found[profile.name] = count
    assert found == most


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.model)
def test_no_layout_takes_more_compute_than_there_is(card: MigCard) -> None:
    most = {0: 0}
    for layout in range(1 << card.slices):
        for profile in card.profiles:
            for mask in profile.masks:
                if layout in most and not layout & mask:
                    most[layout | mask] = max(most.get(layout | mask, 0), most[layout] + profile.slices)
    assert max(most.values()) == card.profiles[-1].slices


def test_an_unknown_profile_is_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"A30-24GB has no MIG profile 3g\.20gb; it has 1g\.6gb, 2g\.12gb, 4g\.24gb"):
        MIG_CARDS["A30-24GB"].profile("3g.20gb")
