"""What a node says of the MIG devices that kubelet may allocate, offered or not."""

import pytest

from lamina.agent.inventory.native_devices import counts_by_profile
from lamina.core.gpu_facts import MigInstanceFacts
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MIXED, NO_STRATEGY, NONE, SINGLE, MigDevice
from lamina.core.sharing import ReplicaSharing, Replicated, Strategy

CARD = MIG_CARDS["A100-40GB"]
DEVICES = [
    MigDevice("GPU-0", MigInstanceFacts(number, name, number, f"MIG-{number}"), CARD.profile(name))
    for number, name in enumerate(("3g.20gb", "1g.5gb", "1g.5gb"))
]


UNSHARED = ReplicaSharing()


def counts(
    strategy: str, *, problem: str = "", mps: bool = False, sharing: ReplicaSharing = UNSHARED
) -> list[tuple[str, int, str, str]]:
    found = counts_by_profile(DEVICES, strategy=strategy, problem=problem, sharing=sharing, mps=mps)
    return [(each.profile, each.count, each.resource, each.reason) for each in found]


@pytest.mark.parametrize(
    ("strategy", "resources"),
    [(MIXED, ("nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb")), (SINGLE, ("nvidia.com/gpu", "nvidia.com/gpu"))],
)
def test_a_strategy_says_by_which_resource_they_are_offered(strategy: str, resources: tuple[str, str]) -> None:
    assert counts(strategy) == [("1g.5gb", 2, resources[0], ""), ("3g.20gb", 1, resources[1], "")]


def test_sharing_can_rename_the_resource() -> None:
    renamed = Replicated(name="nvidia.com/mig-1g.5gb", offered="nvidia.com/mig-1g.5gb.shared", replicas=2)
    found = counts(MIXED, sharing=ReplicaSharing(strategy=Strategy.TIME_SLICING, resources=(renamed,)))
    assert found[0] == ("1g.5gb", 2, "nvidia.com/mig-1g.5gb.shared", "")


@pytest.mark.parametrize(
    ("strategy", "problem", "mps", "reason"),
    [
        (NONE, "", False, NO_STRATEGY),
        (
            SINGLE,
            "device 1 has no MIG devices configured",
            False,
            "the MIG strategy is single, and device 1 has no MIG devices configured",
        ),
        (MIXED, "", True, "the node shares its GPUs by MPS, which cannot share MIG devices"),
    ],
)
def test_devices_that_are_not_offered_have_a_reason(strategy: str, problem: str, mps: bool, reason: str) -> None:
    found = counts(strategy, problem=problem, mps=mps)
    assert found == [("1g.5gb", 2, "", reason), ("3g.20gb", 1, "", reason)]


def test_without_devices_there_is_nothing_to_say() -> None:
    assert counts_by_profile([], strategy=NONE, problem="", sharing=UNSHARED, mps=False) == ()
