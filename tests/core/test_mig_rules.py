"""Which cards the name of a model means."""

import pytest

from lamina.core.mig_rules import cards_named


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("A30", ["A30-24GB"]),
        ("NVIDIA A30", ["A30-24GB"]),
        ("A100-PCIE-40GB", ["A100-40GB"]),
        ("A100-80GB-PCIe", ["A100-80GB"]),
        ("A100", ["A100-40GB", "A100-80GB"]),
        ("NVIDIA H100 80GB HBM3", ["H100-80GB"]),
        ("H20", ["H100-96GB"]),
        ("GH200 144GB", ["GH200-144GB"]),
        ("H200", ["H200-141GB"]),
        ("B200", ["B200-180GB"]),
        ("RTX PRO 6000 Blackwell Server Edition", ["RTX-PRO-6000-96GB"]),
        ("T4", []),
        ("", []),
    ],
)
def test_the_cards_that_a_name_may_mean(name: str, cards: list[str]) -> None:
    assert [card.model for card in cards_named(name)] == cards
