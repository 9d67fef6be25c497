"""Places for the members of a group together, or the sentence that says why there are none, without a controller."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import pytest

from lamina.configuration import DEFAULT
from lamina.core.gpus import Inventory
from lamina.core.ledger import Taken
from lamina.dialects.groups import SCHEDULER_PLUGINS, GroupName
from lamina.group_plans import MAX_KINDS, GroupPlan, GroupPlanner, NoPlan, PlanBasis
from lamina.group_plans.planner import SEARCH_S
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_groups import group_of_members
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.placement import NodeState, NodeTable, PodPlacement, fit
from tests.worlds.objects import MIB, admitted_pod, gpus, inventory

NAME = GroupName(SCHEDULER_PLUGINS, "default", "g")
HALF = MIB // 2


class Nodes:
    """Nodes with one GPU each, of which nothing is taken."""

    def __init__(self, *names: str) -> None:
        self.ledger, self.table = Ledger(), NodeTable()
        for name in names:
            self.ledger.observe_inventory(inventory(name, *gpus(1, prefix=name)))
            self.table.put(self.state(name))

    def state(self, node: str) -> NodeState:
        known = self.ledger.inventory(node)
        assert known is not None
        return self.state_with(node, known, {})

    def state_with(self, node: str, inventory: Inventory, taken: Mapping[str, Taken]) -> NodeState:
        return NodeState.of(node, inventory, taken)

    def fitting(self, pod: ParsedPod, nodes: list[str]) -> list[str]:
        assert pod.request is not None
        return [node for node in nodes if isinstance(fit(pod.request, self.state(node)), PodPlacement)]


def members(*memory: int) -> list[ParsedPod]:
    pods = [admitted_pod(f"m{number}", gpumem=amount) for number, amount in enumerate(memory)]
    return [parse_pod({**pod, "metadata": pod["metadata"] | {"uid": pod["metadata"]["name"]}}, DEFAULT) for pod in pods]


def plan(
    pods: Sequence[ParsedPod],
    needed: int,
    *nodes: str,
    first: int = 0,
    first_on: Sequence[str] = (),
    closed: Callable[[Set[str], int], Set[str]] = lambda uids, priority: set(),
    now: Callable[[], float] = lambda: 0.0,
    quotas: ResourceQuotas | None = None,
) -> GroupPlan | NoPlan:
    there = Nodes(*nodes)
    basis = PlanBasis(there, PodRules(there.ledger, quotas or ResourceQuotas()), there.fitting, closed, now)
    group = group_of_members(needed, 60.0, pods)
    return GroupPlanner(basis).plan(NAME, group, pods[first], first_on or list(nodes), {})


def places(found: GroupPlan | NoPlan) -> dict[str, str]:
    assert isinstance(found, dict), found
    return {uid: place.node for uid, place in found.items()}


@pytest.mark.parametrize(("nodes", "free"), [("ab", 4), ("abc", 6)])
def test_as_many_members_have_places_as_there_is_room_and_not_one_more(nodes: str, free: int) -> None:
    found = places(plan(members(*[HALF] * free), free, *nodes))
    assert sorted(found.values()) == sorted(nodes * 2)
    refused = plan(members(*[HALF] * (free + 1)), free + 1, *nodes)
    assert refused == NoPlan(
        f"pod group default/g is placed completely or not at all: {free + 1} members must be placed at once, but only "
        f"{free} can be placed now"
    )


def test_members_that_do_not_exist_are_waited_for() -> None:
    assert plan(members(HALF), 2, "a") == NoPlan("pod group default/g waits for its members: 1 of 2 exist")


def test_the_largest_goes_first_and_the_asked_one_where_it_may() -> None:
    assert places(plan(members(HALF, MIB), 2, "a", "b", first_on=["b"])) == {"m0": "b", "m1": "a"}
    assert isinstance(plan(members(MIB, HALF), 2, "a", first=1), NoPlan)


def test_on_a_node_that_is_closed_to_the_group_only_the_asked_member_goes() -> None:
    """What filter allows the member that is asked about is known to be open to it."""
    assert places(plan(members(HALF, HALF), 2, "a", "b", closed=lambda uids, priority: {"b"}))["m1"] == "a"
    assert isinstance(plan(members(MIB, MIB), 2, "a", "b", closed=lambda uids, priority: {"a", "b"}), NoPlan)


def test_quotas_leave_room_for_all_members_or_are_the_reason() -> None:
    def limited(hard: int) -> ResourceQuotas:
        quotas, meta = ResourceQuotas(), {"name": "q", "namespace": "default"}
        quotas.observe({"metadata": meta, "spec": {"hard": {"limits.nvidia.com/gpumem": hard}}})
        return quotas

    assert len(places(plan(members(1000, 1000), 2, "a", quotas=limited(2000)))) == 2
    refused: Any = plan(members(1000, 1000), 2, "a", quotas=limited(1999))
    assert "quota q allows 1999" in refused.reason and "pod group default/g requests 2000" in refused.reason


def test_kinds_and_the_time_of_a_search_are_bounded() -> None:
    kinds = [1000 + number for number in range(MAX_KINDS)]
    assert len(places(plan(members(*kinds), MAX_KINDS, "a", "b"))) == MAX_KINDS
    refused: Any = plan(members(*kinds, 999), MAX_KINDS + 1, "a", "b")
    assert refused.reason == f"pod group default/g has {MAX_KINDS + 1} kinds of members; it may have at most 16"
    ticks = iter(number * SEARCH_S / 2 for number in range(10))
    late: Any = plan(members(HALF, HALF, HALF, HALF), 4, "a", "b", now=lambda: next(ticks))
    assert "places were found for 1 of 4 members" in late.reason and late.for_s > 0
