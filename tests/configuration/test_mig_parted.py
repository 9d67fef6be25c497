"""mig-parted's file: each of its errors, the targets that its names set, and the standard names."""

import pytest

from lamina.configuration.mig_parted import MigTarget, SelectableGpu, load, targets
from lamina.core.mig import MigCard
from lamina.core.mig_cards import MIG_CARDS, mig_card
from lamina.errors import BadInput

A100, A30, V100 = 0x20B010DE, 0x20B710DE, 0x1DB410DE
GPUS = [SelectableGpu(f"GPU-{i}", i, device, mig_card(device)) for i, device in enumerate((A100, A100, A30, V100))]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mig-configs: {}", "unable to parse with missing 'version' field"),
        ("version: v2", "unknown version: v2; it must be v1"),
        ("{version: v1, mig-configs: {}}", "at least one entry in 'mig-configs' is required"),
        ("{version: v1}", "at least one entry in 'mig-configs' is required"),
        ("{version: v1, mig-configs: {a: []}}", "mig-configs.a: at least one entry in the list is required"),
        ("{version: v1, more: 1, mig-configs: {a: []}}", "unexpected field: more"),
        ("{version: v1, mig-configs: {a: [{device: all}]}}", "a[0]: unexpected field: device; known fields are"),
        ("{version: v1, mig-configs: {a: [{mig-enabled: false}]}}", "missing required field: devices"),
        ("{version: v1, mig-configs: {a: [{devices: all}]}}", "missing required field: mig-enabled"),
        (
            "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true}]}}",
            "missing required field 'mig-devices' when 'mig-enabled' is true",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}}]}}",
            "MIG devices included when 'mig-enabled' is false",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}]}}",
            "all counts for all MigProfiles are 0",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: some, mig-enabled: false}]}}",
            "devices must be all or a list of indices, got 'some'",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: all, device-filter: A100, mig-enabled: false}]}}",
            "device-filter must be a PCI device ID such as 0x20B010DE or a list of them, got 'A100'",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: maybe}]}}",
            "mig-enabled must be true or false, got 'maybe'",
        ),
        (
            "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: x}}]}}",
            "mig-devices must be profiles with counts",
        ),
        ("a: [", "invalid YAML"),
    ],
)
def test_errors_use_the_names_of_mig_parted(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        load(text, "the file")
    assert str(refused.value).startswith("the file") and sentence in str(refused.value)


FILE = """
version: v1
mig-configs:
  custom:
  - {devices: all, mig-enabled: false}
  - {devices: [1], device-filter: "0x20B010DE", mig-enabled: true, mig-devices: {3g.20gb: 1, 1g.5gb: 3}}
  - {devices: all, device-filter: ["0x20B710DE"], mig-enabled: true, mig-devices: {}}
  too-much:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.20gb: 2, 1g.5gb: 1}}
  no-such:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 1}}
  on-v100:
  - {devices: [3], mig-enabled: true, mig-devices: {}}
  all-1g.5gb:
  - {devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 2}}
"""


def test_entries_hold_where_they_select_and_later_ones_first() -> None:
    configs = load(FILE, "the file")
    assert targets("custom", configs, GPUS) == {
        "GPU-0": MigTarget(False), "GPU-1": MigTarget(True, {"3g.20gb": 1, "1g.5gb": 3}), "GPU-2": MigTarget(True),
    }  # fmt: skip
    assert targets("all-1g.5gb", configs, GPUS) == {"GPU-0": MigTarget(True, {"1g.5gb": 2})}, "the file goes before"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("too-much", "2 3g.20gb, 1 1g.5gb do not fit A100-40GB together; of one profile alone fit 7 1g.5gb"),
        ("no-such", "A100-40GB has no MIG profile 3g.40gb; it has 1g.5gb, 1g.5gb+me"),
        ("on-v100", "on-v100 enables MIG on GPU 3, which does not support it"),
        ("all-3g.40gb", "the GPUs of this node have no MIG configuration all-3g.40gb; it must be one of all-1g.10gb"),
    ],
)
def test_s1_7_what_a_card_does_not_have_is_refused_with_what_it_has(name: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        targets(name, load(FILE, "the file"), GPUS)
    assert sentence in str(refused.value)


def test_standard_names_follow_from_the_cards() -> None:
    def asked(name: str) -> dict[str, MigTarget]:
        return targets(name, {}, GPUS)

    assert asked("all-disabled") == dict.fromkeys(("GPU-0", "GPU-1", "GPU-2"), MigTarget(False))
    assert asked("all-enabled") == dict.fromkeys(("GPU-0", "GPU-1", "GPU-2"), MigTarget(True))
    balanced = asked("all-balanced")
    assert balanced["GPU-0"] == MigTarget(True, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1})
    assert balanced["GPU-2"] == MigTarget(True, {"1g.6gb": 2, "2g.12gb": 1})
    assert asked("all-1g.5gb.me") == dict.fromkeys(("GPU-0", "GPU-1"), MigTarget(True, {"1g.5gb+me": 1}))


@pytest.mark.parametrize("card", MIG_CARDS.values(), ids=lambda card: card.model)
def test_each_profile_of_each_card_has_a_standard_name(card: MigCard) -> None:
    gpu = SelectableGpu("GPU-0", 0, card.devices[0] << 16 | 0x10DE, card)
    for profile in card.profiles:
        target = targets(f"all-{profile.name.replace('+', '.')}", {}, [gpu])["GPU-0"]
        assert target == MigTarget(True, {profile.name: card.most(profile)})
