"""How many members a group may need, and what is said of one that waits for them."""

import pytest

from lamina.dialects.groups import KUBERNETES, SCHEDULER_PLUGINS, GroupName
from lamina.errors import BadInput
from lamina.ledger.pod_groups import MAX_MEMBERS, members_needed, too_few_members

GROUP, GANG = GroupName(SCHEDULER_PLUGINS, "team", "g"), GroupName(KUBERNETES, "team", "g")


@pytest.mark.parametrize("minimum", [1, MAX_MEMBERS])
def test_a_group_says_how_many_members_run_together(minimum: int) -> None:
    assert members_needed(GROUP, {"minMember": minimum}) == minimum
    assert members_needed(GANG, {"schedulingPolicy": {"gang": {"minCount": minimum}}}) == minimum


@pytest.mark.parametrize("minimum", [0, MAX_MEMBERS + 1, -1, True, "2", 1.5, None])
def test_a_number_of_members_that_cannot_be_is_refused(minimum: object) -> None:
    for name, spec in (
        (GROUP, {"minMember": minimum}),
        (GANG, {"schedulingPolicy": {"gang": {"minCount": minimum}}}),
    ):
        with pytest.raises(BadInput, match=f"must be an integer from 1 to {MAX_MEMBERS}, got {minimum!r}$"):
            members_needed(name, spec)


def test_members_of_a_basic_group_are_placed_one_by_one() -> None:
    assert members_needed(GANG, {"schedulingPolicy": {"basic": {}}}) == 0


@pytest.mark.parametrize(
    ("absent", "end"),
    [
        ([], "exist"),
        (["a", "b", "c"], "exist; a; b; c"),
        (["a", "b", "c", "d"], "exist; a; b; c; and 1 more"),
    ],
)
def test_three_of_the_absent_members_are_named(absent: list[str], end: str) -> None:
    assert too_few_members(GROUP, 5, 1, absent) == f"pod group team/g waits for its members: 1 of 5 {end}"
