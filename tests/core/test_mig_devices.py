"""When the strategy single advertises MIG devices, in the words of NVIDIA's plugin where it does not."""

import pytest

from lamina.core.gpu_facts import GpuFacts, MigInstanceFacts
from lamina.core.gpus import MigDeviceCount
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import NO_STRATEGY, MigDevice, profile_resource, single_strategy_problem, strategy_hint

CARD = MIG_CARDS["A100-40GB"]

UNEVEN = "all devices on the node must be configured with the same migEnabled value"
MIXTURE = "more than one MIG device type present on node"


def problem(*gpus: list[str] | None) -> str:
    """That of a node whose GPUs have instances of these profiles; None is a GPU whose MIG mode is off."""
    facts = [
        GpuFacts(f"GPU-{index}", index, "A100", 40960, mig_enabled=profiles is not None)
        for index, profiles in enumerate(gpus)
    ]
    devices = [
        MigDevice(f"GPU-{index}", MigInstanceFacts(number, profile, 0, f"MIG-{index}-{number}"), CARD.profile(profile))
        for index, profiles in enumerate(gpus)
        for number, profile in enumerate(profiles or ())
    ]
    return single_strategy_problem(facts, devices)


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        ([], ""),
        ([None, None], ""),
        ([["1g.5gb", "1g.5gb"]], ""),
        ([["1g.5gb", "1g.5gb"], ["1g.5gb"]], ""),
        ([["1g.5gb"], None], UNEVEN),
        ([None, ["1g.5gb"]], UNEVEN),
        ([["1g.5gb"], []], "device 1 has no MIG devices configured"),
        ([[], []], "device 0 has no MIG devices configured"),
        ([["1g.5gb"], ["2g.10gb"]], MIXTURE),
        ([["1g.5gb", "1g.5gb+me"]], MIXTURE),
    ],
)
def test_s2_5_when_single_is_possible(gpus: list[list[str] | None], reason: str) -> None:
    assert problem(*gpus) == reason


def test_a_profile_with_media_engines_is_a_resource_that_kubernetes_accepts() -> None:
    assert profile_resource("1g.5gb+me") == "nvidia.com/mig-1g.5gb.me"


def test_only_devices_that_no_strategy_offers_come_with_the_strategy_to_set() -> None:
    count = MigDeviceCount(profile="1g.5gb", count=1, reason=NO_STRATEGY)
    assert strategy_hint(count).startswith("; set it to mixed")
    assert strategy_hint(MigDeviceCount(profile="1g.5gb", count=1, reason=MIXTURE)) == ""
