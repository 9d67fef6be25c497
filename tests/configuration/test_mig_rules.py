"""Modes of nodes and MIG layouts as HAMi's and Volcano's configurations name them."""

import pytest

from lamina.configuration import DEFAULT, load
from lamina.core.gpus import Mode
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_rules import rule_for
from lamina.errors import BadInput

VOLCANOS = """
volcano:
  knownMigGeometries:
  - models: [ "A30" ]
    allowedGeometries:
    - {group: group1, geometries: [{name: 1g.6gb, memory: 6144, count: 4}]}
    - {group: group2, geometries: [{name: 2g.12gb, memory: 12288, count: 2}]}
    - {group: group3, geometries: [{name: 4g.24gb, memory: 24576, count: 1}]}
  - models: [ "A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB" ]
    allowedGeometries:
    - {group: group1, geometries: [{name: 1g.5gb, memory: 5120, count: 7}]}
    - {group: group2, geometries: [{name: 2g.10gb, memory: 10240, count: 3}, {name: 1g.5gb, memory: 5120, count: 1}]}
    - {group: group3, geometries: [{name: 3g.20gb, memory: 20480, count: 2}]}
    - {group: group4, geometries: [{name: 7g.40gb, memory: 40960, count: 1}]}
  - models: [ "A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB" ]
    allowedGeometries:
    - {group: group1, geometries: [{name: 1g.10gb, memory: 10240, count: 7}]}
    - {group: group4, geometries: [{name: 7g.79gb, memory: 80896, count: 1}]}
"""
HAMIS = """
hami:
  knownMigGeometries:
  - models: [ "A30" ]
    allowedGeometries:
    - - {name: 1g.6gb, core: 25, memory: 6144, count: 4}
    - - {name: 2g.12gb, core: 50, memory: 12288, count: 2}
"""


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as refused:
        load(text, "c")
    return str(refused.value).removeprefix("c: ")


def test_the_modes_of_a_node_go_before_the_clusters() -> None:
    config = load(
        "{sharing: {modes: [quota, mig]}, nodeconfig: [{name: a, operatingmode: mig}, {name: b}, "
        "{name: c, operatingmode: hami-core}]}",
        "c",
    )
    found = {name: config.for_node(name).modes for name in "abcd"}
    both = (Mode.QUOTA, Mode.MIG)
    assert found == {"a": (Mode.MIG,), "b": both, "c": (Mode.QUOTA,), "d": both}
    own = load("nodes: {overrides: [{name: a, modes: [mig, quota]}]}", "c")
    assert own.for_node("a").modes == both[::-1]
    assert DEFAULT.for_node("a").modes == ()
    assert load("sharing: {modes: [mig]}", "c").for_node("a").modes == (Mode.MIG,)
    assert load("sharing: {modes: [mps]}", "c").for_node("a").modes == (Mode.MPS,)
    assert load("nodeconfig: [{name: a, operatingmode: mps}]", "c").for_node("a").modes == (Mode.MPS,)


def test_volcanos_and_hamis_geometries_are_read_as_they_are_written() -> None:
    volcano, hami = load(VOLCANOS, "c").mig_rules, load(HAMIS, "c").mig_rules
    assert [rule.layouts for rule in volcano] == [
        ((("1g.6gb", 4),), (("2g.12gb", 2),), (("4g.24gb", 1),)),
        ((("1g.5gb", 7),), (("2g.10gb", 3), ("1g.5gb", 1)), (("3g.20gb", 2),), (("7g.40gb", 1),)),
        ((("1g.10gb", 7),), (("7g.80gb", 1),)),
    ]
    assert hami[0].profiles == ("1g.6gb", "2g.12gb")


def test_a_rule_concerns_the_models_that_contain_its_name() -> None:
    rules = load(VOLCANOS, "c").mig_rules
    a100, a30 = MIG_CARDS["A100-40GB"], MIG_CARDS["A30-24GB"]
    assert rule_for(rules, "NVIDIA A100-SXM4-40GB", a100) == rules[1]
    assert rule_for(rules, "NVIDIA A30", a30) == rules[0]
    assert rule_for(rules, "NVIDIA H100 PCIe", MIG_CARDS["H100-80GB"]) is None
    of_any = load("hami: {migProfileAllowlist: [{models: [A100], profiles: [1g.5gb]}]}", "c").mig_rules
    assert rule_for(of_any, "NVIDIA A100-SXM4-40GB", a100) == of_any[0]
    assert rule_for(of_any, "NVIDIA A100-SXM4-80GB", MIG_CARDS["A100-80GB"]) is None, "it has no such profile"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("{models: [T4], profiles: [1g.5gb]}", "T4: 'T4' names no card that can be cut; known are A100-40GB, "),
        ("{models: [A30], profiles: [1g.5gb]}", "A30: A30-24GB has no MIG profile 1g.5gb; it has 1g.6gb, 1g.6gb+me, "),
        ("{models: [A30, T4], profiles: [1g.6gb]}", "A30, T4: 'T4' names no card that can be cut"),
    ],
)
def test_profiles_that_a_card_does_not_have_are_refused_with_those_it_has(rule: str, sentence: str) -> None:
    assert refusal(f"hami: {{migProfileAllowlist: [{rule}]}}").startswith(sentence)


@pytest.mark.parametrize(
    ("instances", "sentence"),
    [
        ("{name: 1g.5gb, count: 8}", "8 1g.5gb do not fit A100-40GB together; of one profile alone fit 7 1g.5gb, "),
        ("{name: 4g.20gb, count: 2}", "2 4g.20gb do not fit A100-40GB together; of one profile alone fit 7 1g.5gb, "),
        ("{name: 1g.6gb, count: 1}", "A100-40GB has no MIG profile 1g.6gb; it has 1g.5gb, 1g.5gb+me, 1g.10gb, "),
        ("{name: 1g.5gb, count: 7, memory: 5121}", "memory of 1g.5gb must be at most 5120, got 5121"),
    ],
)
def test_s1_7_a_geometry_that_the_card_does_not_have_is_refused_with_the_legal_ones(
    instances: str, sentence: str
) -> None:
    models = "models: [A100-SXM4-40GB]"
    for text in (
        f"volcano: {{knownMigGeometries: [{{{models}, allowedGeometries: [{{geometries: [{instances}]}}]}}]}}",
        f"hami: {{knownMigGeometries: [{{{models}, allowedGeometries: [[{instances}]]}}]}}",
    ):
        assert refusal(text).startswith(f"A100-SXM4-40GB: {sentence}")


def test_a_geometry_of_the_wrong_shape_is_refused_by_its_place() -> None:
    flat = "hami: {knownMigGeometries: [{models: [A30], allowedGeometries: [{name: 1g.6gb, count: 1}]}]}"
    assert refusal(flat).startswith("hami.knownMigGeometries[0].allowedGeometries must be a list of lists")
    count = "hami: {knownMigGeometries: [{models: [A30], allowedGeometries: [[{name: 1g.6gb, count: 9}]]}]}"
    assert refusal(count).endswith("count must be an integer from 1 to 8, got 9")
    unknown = "volcano: {knownMigGeometries: [{models: [A30], allowedGeometry: []}]}"
    assert refusal(unknown).startswith("unknown key allowedGeometry in volcano.knownMigGeometries[0]; did you mean")
