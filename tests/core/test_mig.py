"""MIG cards: the counts that NVIDIA's tables give, every layout that fits, and none beyond the card."""

from collections import Counter
from collections.abc import Iterator

import pytest

from lamina.core.mig import MigCard, Placed
from lamina.core.mig_cards import MIG_CARDS, mig_card
from lamina.errors import BadInput

CARDS = list(MIG_CARDS.values())
SHAPES = [MIG_CARDS[model] for model in ("A100-40GB", "A30-24GB", "RTX-PRO-6000-96GB")]
"""One card of each shape; those of the others differ in names and amounts only, which a test of its own shows."""


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.model)
def test_every_place_lies_on_the_card(card: MigCard) -> None:
    for profile in card.profiles:
        assert all(mask < 1 << card.slices and mask.bit_count() == profile.size for mask in profile.masks)
        assert len(set(profile.starts)) == len(profile.starts)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (
            "A100-40GB",
            {"1g.5gb": 7, "1g.5gb+me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
        ),
        (
            "H200-141GB",
            {"1g.18gb": 7, "1g.18gb+me": 1, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
        ),
        ("A30-24GB", {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1}),
    ],
)
def test_as_many_of_each_profile_fit_as_the_driver_says(model: str, most: dict[str, int]) -> None:
    card = MIG_CARDS[model]
    assert {profile.name: card.most(profile) for profile in card.profiles} == most


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
    with pytest.raises(
        KeyError, match=r"A30-24GB has no MIG profile 3g\.20gb; it has 1g\.6gb, 1g\.6gb\+me, 2g\.12gb, "
    ):
        MIG_CARDS["A30-24GB"].profile("3g.20gb")


def layouts(card: MigCard, layout: tuple[Placed, ...] = ()) -> Iterator[tuple[Placed, ...]]:
    """Every layout of a card once, the places in their order."""
    yield layout
    for profile in card.profiles:
        for start in card.places(profile, layout):
            if not layout or (start, profile.name) > (layout[-1].start, layout[-1].profile):
                yield from layouts(card, (*layout, Placed(profile.name, start)))


def test_cards_have_one_of_three_shapes() -> None:
    def shape(card: MigCard) -> list[object]:
        return [(p.slices, p.size, p.starts, p.media) for p in card.profiles]

    assert all(shape(card) in [shape(one) for one in SHAPES] for card in CARDS)


@pytest.mark.parametrize("card", SHAPES, ids=lambda card: card.model)
def test_instances_that_fit_in_some_layout_are_given_one_and_others_none(card: MigCard) -> None:
    possible = {frozenset(Counter(p.profile for p in layout).items()) for layout in layouts(card)}
    for counts in possible:
        found = card.arrange(dict(counts))
        card.check(found)
        assert Counter(place.profile for place in found) == dict(counts)
    for counts in possible:
        for profile in card.profiles:
            more = Counter(dict(counts))
            more[profile.name] += 1
            if frozenset(more.items()) not in possible:
                with pytest.raises(BadInput, match="do not fit"):
                    card.arrange(more)


@pytest.mark.parametrize("kept", [Placed("1g.5gb", 0), Placed("1g.5gb", 6), Placed("3g.20gb", 4)])
def test_instances_that_are_kept_stay_and_others_go_anywhere_next_to_them(kept: Placed) -> None:
    """Also before one of the same profile that is kept."""
    card = MIG_CARDS["A100-40GB"]
    small, large = card.profile("1g.5gb"), card.profile("3g.20gb")
    for profile in (small, large):
        room = card.places(profile, [kept])
        for count in range(1, len(room) + 1):
            if profile is small or count == 1:
                found = card.arrange({profile.name: count}, (kept,))
                card.check([kept, *found])
                assert [each.profile for each in found] == [profile.name] * count
        with pytest.raises(BadInput, match=f"do not fit A100-40GB together next to .*{kept.profile}"):
            card.arrange({profile.name: len(room) + 1}, (kept,))


@pytest.mark.parametrize("card", SHAPES, ids=lambda card: card.model)
def test_a_place_that_is_not_legal_is_refused_with_those_that_are(card: MigCard) -> None:
    for layout in layouts(card):
        card.check(layout)
        if len(layout) > 4:
            continue  # what is refused next to many is refused next to four of them
        for profile in card.profiles:
            legal = card.places(profile, layout)
            for start in set(range(card.slices)) - set(legal):
                with pytest.raises(BadInput) as refused:
                    card.check([*layout, Placed(profile.name, start)])
                there = f"it can begin at {', '.join(map(str, legal))}" if legal else "no place is left for it"
                assert str(refused.value).endswith(there)


def test_media_engines_are_claimed_once() -> None:
    a100, rtx = MIG_CARDS["A100-40GB"], MIG_CARDS["RTX-PRO-6000-96GB"]
    with pytest.raises(BadInput, match="do not fit"):
        a100.arrange({"1g.5gb+me": 2})
    assert rtx.arrange({"1g.24gb+me.all": 1, "1g.24gb-me": 3})
    with pytest.raises(BadInput, match="do not fit"):
        rtx.arrange({"1g.24gb+me.all": 1, "1g.24gb": 1})


@pytest.mark.parametrize(
    ("device", "balanced"),
    [
        (0x20B010DE, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        (0x233010DE, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        (0x20B710DE, {"1g.6gb": 2, "2g.12gb": 1}),
        (0x232110DE, {"1g.12gb": 2, "2g.24gb": 1, "3g.47gb": 1}),
        (0x20B610DE, {"1g.12gb": 2, "2g.24gb": 1, "3g.48gb": 1}),
        (0x233510DE, {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        (0x234810DE, {"1g.18gb": 2, "2g.36gb": 1, "3g.72gb": 1}),
        (0x290110DE, {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        (0x318210DE, {"1g.34gb": 2, "2g.67gb": 1, "3g.135gb": 1}),
        (0x294110DE, {"1g.23gb": 2, "2g.47gb": 1, "3g.93gb": 1}),
        (0x31C210DE, {"1g.35gb": 2, "2g.70gb": 1, "3g.139gb": 1}),
        (0x2BB510DE, {"1g.24gb": 2, "2g.48gb": 1}),
    ],
)
def test_the_balanced_mix_is_that_of_nvidias_table(device: int, balanced: dict[str, int]) -> None:
    card = mig_card(device)
    assert card is not None
    assert card.balanced() == balanced
    card.check(card.arrange(balanced))


def test_a_device_without_mig_has_no_card() -> None:
    assert mig_card(0x1DB410DE) is None
