"""How each pod of a group counts, whatever happened to it, and that groups of them are placed."""

import itertools
from typing import Any

import pytest

from lamina.configuration import DEFAULT
from lamina.dialects.groups import GROUP_APIS
from lamina.ledger.group_members import Members, Membership, membership
from lamina.ledger.pod_groups import PodGroup, group_of_members
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ports.kube import Object
from tests.controller.pod_groups import member
from tests.worlds.objects import admitted_pod, gpu_pod

DELETED = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
GATED = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
FOREIGN = {"schedulerName": "mine"}
STATES: dict[str, tuple[dict[str, Any], dict[str, Any], str, Membership]] = {
    "waiting": ({}, {}, "Pending", Membership.WAITING),
    "bound": ({}, {"nodeName": "n"}, "Running", Membership.BOUND),
    "succeeded": ({}, {"nodeName": "n"}, "Succeeded", Membership.SATISFIED),
    "succeeded and deleted": (DELETED, {"nodeName": "n"}, "Succeeded", Membership.SATISFIED),
    "failed": ({}, {"nodeName": "n"}, "Failed", Membership.ABSENT),
    "failed before it was bound": ({}, {}, "Failed", Membership.ABSENT),
    "gated": ({}, GATED, "Pending", Membership.ABSENT),
    "gated and deleted": (DELETED, GATED, "Pending", Membership.ABSENT),
    "foreign": ({}, FOREIGN, "Pending", Membership.ABSENT),
    "deleted": (DELETED, {}, "Pending", Membership.ABSENT),
    "terminating": (DELETED, {"nodeName": "n"}, "Running", Membership.ABSENT),
}
"""Further metadata, further fields of the spec, the phase, and how such a pod counts."""


def pod(name: str, state: str, *, gpus: bool = True) -> Object:
    metadata, spec, phase, _ = STATES[state]
    made = admitted_pod(name, gpu=1, gpumem=1000) if gpus else gpu_pod(name)
    made["metadata"] |= {"uid": f"uid-{name}", **metadata}
    made["spec"] |= spec
    return made | {"status": {"phase": phase}}


def parsed(name: str, state: str, *, gpus: bool = True) -> ParsedPod:
    return parse_pod(pod(name, state, gpus=gpus), DEFAULT)


@pytest.mark.parametrize("state", STATES)
def test_each_state_counts_in_one_way(state: str) -> None:
    assert membership(parsed("p", state)) is STATES[state][3]


@pytest.mark.parametrize("state", STATES)
def test_without_gpus_it_needs_no_place_and_is_there_unless_it_cannot_come(state: str) -> None:
    expected = STATES[state][3]
    if expected in (Membership.WAITING, Membership.BOUND) or state == "foreign":
        expected = Membership.SATISFIED
    assert membership(parsed("p", state, gpus=False)) is expected


def test_a_request_that_cannot_be_read_waits_for_no_place() -> None:
    odd = admitted_pod("odd", gpu=1, gpumem="much")
    assert membership(parse_pod(odd, DEFAULT)) is Membership.ABSENT


def group(minimum: int, *states: str) -> PodGroup:
    return group_of_members(minimum, 60.0, [parsed(f"p{n}", state) for n, state in enumerate(states)])


def test_every_group_of_three_needs_what_is_left_of_its_minimum() -> None:
    """Absent pods change nothing but the sentence, and satisfied ones leave less to place."""
    for states in itertools.combinations_with_replacement(STATES, 3):
        made, kinds = group(3, *states), [STATES[state][3] for state in states]
        assert made.needed == 3 - kinds.count(Membership.SATISFIED)
        assert len(made.bound) == kinds.count(Membership.BOUND)
        assert len(made.waiting) == kinds.count(Membership.WAITING)
        assert made.incomplete == (Membership.ABSENT in kinds), states


@pytest.mark.parametrize(
    ("minimum", "states", "placed"),
    [
        (2, ["succeeded", "failed", "waiting"], True),  # a Job of two of which one failed and was replaced
        (2, ["succeeded", "deleted", "waiting"], True),
        (3, ["succeeded", "succeeded", "waiting"], True),  # the last of four completions, three at a time
        (2, ["gated", "waiting"], False),
        (2, ["foreign", "waiting"], False),
        (2, ["failed", "waiting"], False),
        (2, ["terminating", "waiting", "waiting"], True),
        (1, ["gated", "waiting"], True),
    ],
)
def test_groups_as_jobs_and_queues_leave_them(minimum: int, states: list[str], placed: bool) -> None:
    assert group(minimum, *states).incomplete != placed


def test_why_pods_do_not_count_is_said_and_of_those_that_have_ended_nothing() -> None:
    pods = [parsed(f"p{n}", state) for n, state in enumerate(["gated", "foreign", "deleted", "failed", "waiting"])]
    assert Members.of(pods).absent == (
        "p0 is held by the gate kueue.x-k8s.io/admission",
        "p1 names the scheduler mine, which Lamina does not serve",
        "p2 is being deleted",
    )


@pytest.mark.parametrize("api", sorted(GROUP_APIS))
def test_members_of_every_kind_of_group_count_alike(api: str) -> None:
    one = member("a", 0, api=api)
    assert membership(parse_pod(one, DEFAULT)) is Membership.WAITING
    one["spec"] |= GATED
    assert membership(parse_pod(one, DEFAULT)) is Membership.ABSENT
