"""Init containers share tickets with the containers after them; each still starts with its own limits only."""

import pytest

from lamina.agent.prepare.ticket_owner import assign_names
from lamina.agent.state.record import Allocation, Bound
from lamina.errors import NotYet
from lamina.model.grants import ContainerGrant, Grant
from tests.agent.node import KIND, Node, container, share

SMALL, LARGE = share(0, 100), share(0, 9000)


async def test_one_set_of_tickets_serves_both_and_each_name_has_its_own_limits(node: Node) -> None:
    await node.pod("p", container("init", LARGE, init=True), container("main", SMALL))
    names = await node.admit("p", {"init": ["ticket-0"], "main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    assert node.limits(names["init"]) == "init:0:9000"
    assert node.limits(names["main"]) == "main:0:100"


async def test_the_same_for_the_start_of_the_second_after_a_restart_of_the_agent(node: Node) -> None:
    await node.pod("p", container("init", LARGE, init=True), container("main", SMALL))
    names = await node.admit("p", {"init": ["ticket-0"], "main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    node.start()
    await node.preparer.prepare(["ticket-0"])
    assert node.limits(names["init"]) == "init:0:9000"
    assert node.limits(names["main"]) == "main:0:100"


async def test_several_init_containers_and_a_name_left_by_an_earlier_pod(node: Node) -> None:
    left = node.allocate("ticket-0")
    await node.pod(
        "p", container("init-1", share(0, 1), init=True), container("init-2", share(0, 2), init=True), container("main")
    )
    names = await node.admit("p", {"init-1": ["ticket-0"], "init-2": ["ticket-0"], "main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    assert [node.limits(names[name]) for name in names] == ["init-1:0:1", "init-2:0:2", "main:0:1000"]
    assert node.spec(left) is None


async def test_an_init_container_with_more_gpus_than_the_rest(node: Node) -> None:
    await node.pod("p", container("init", share(0, 7), share(1, 8), init=True), container("main", SMALL))
    names = await node.admit("p", {"init": ["ticket-0", "ticket-1"], "main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0", "ticket-1"])
    assert node.limits(names["init"]) == "init:0:7 init:1:8"
    assert node.spec(names["main"]) is None
    await node.preparer.prepare(["ticket-0"])
    assert node.limits(names["main"]) == "main:0:100"


async def test_an_init_container_with_tickets_of_its_own_cannot_be_identified(node: Node) -> None:
    await node.pod("p", container("init", init=True))
    await node.admit("p", {"init": ["ticket-0"]})
    with pytest.raises(NotYet, match="can only be identified by another container of its pod"):
        await node.preparer.prepare(["ticket-0"])


async def test_a_sidecar_is_listed_and_is_itself(node: Node) -> None:
    await node.pod("p", container("side", SMALL, init=True, sidecar=True), container("main", LARGE))
    names = await node.admit("p", {"side": ["ticket-0"], "main": ["ticket-1"]})
    await node.preparer.prepare(["ticket-0"])
    await node.preparer.prepare(["ticket-1"])
    assert node.limits(names["side"]) == "side:0:100"
    assert node.limits(names["main"]) == "main:0:9000"


def names_of(*containers: str | None, uid: str = "uid") -> list[Allocation]:
    """Allocations of one ticket, named 0, 1 and so on, bound to these containers of the pod; None is not bound."""
    tickets = frozenset({"ticket-0"})
    return [
        Allocation(
            name=str(number),
            tickets=tickets,
            bound=None if name is None else Bound(namespace="default", pod="p", pod_uid=uid, container=name),
        )
        for number, name in enumerate(containers)
    ]


def grant(*containers: ContainerGrant) -> Grant:
    return Grant(pod="p", pod_uid="uid", node="n", dialect="hami", containers=containers)


TWO_INITS = grant(
    container("init-large", LARGE, init=True),
    container("init-small", SMALL, init=True),
    container("main", share(0, 500)),
)


def given(allocations: list[Allocation], granted: Grant, holder: str) -> list[str]:
    """The container of each name that has one, in the names' order."""
    result = assign_names(allocations, granted, holder, frozenset({"ticket-0"}), KIND)
    return [f"{name}:{result[name].name}" for name in sorted(result)]


def test_a_single_name_is_the_listed_containers() -> None:
    assert given(names_of(None), TWO_INITS, "main") == ["0:main"]


def test_where_the_init_container_is_not_certain_it_gets_the_smaller_limits() -> None:
    assert given(names_of(None, None), TWO_INITS, "main") == ["0:init-small", "1:main"]
    assert given(names_of(None), TWO_INITS, "") == ["0:init-small"]


def test_a_name_asked_for_again_gets_the_smallest_limits_that_come_into_question() -> None:
    bound = names_of("init-large", "init-small", "main", None)
    assert given(bound, TWO_INITS, "main") == ["0:init-large", "1:init-small", "2:main", "3:init-small"]


def test_names_of_other_pods_stay_out() -> None:
    others = [*names_of("main", uid="other"), Allocation(name="9", tickets=frozenset({"ticket-0"}))]
    assert given(others, grant(container("main")), "main") == ["9:main"]
    with pytest.raises(NotYet):
        given(names_of("main", uid="other"), grant(container("main")), "main")


def test_no_container_gets_limits_of_another_pod_or_more_than_its_grant() -> None:
    """However many names there are, each leads to a container of the grant, and the last one to main."""
    for count in range(1, 6):
        result = assign_names(names_of(*[None] * count), TWO_INITS, "main", frozenset({"ticket-0"}), KIND)
        assert result[str(count - 1)].name == "main"
        assert len(result) == min(count, 3)
        assert {c.name for name, c in result.items() if name != str(count - 1)} <= {"init-large", "init-small"}
