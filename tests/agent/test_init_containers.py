"""Init containers share tickets with the containers after them; each still starts with its own limits only."""

import pytest

from lamina.agent.cleanup.release import UNCLAIMED_S
from lamina.agent.prepare.container_identity import assign_names
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.grants import ContainerGrant, Grant
from lamina.errors import NotYet
from lamina.ports.kubelet.allocations import CHECKPOINT
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


async def test_an_init_container_with_tickets_of_its_own_is_identified_by_kubelets_checkpoint(node: Node) -> None:
    uid = await node.pod("p", container("init", LARGE, init=True))
    names = await node.admit("p", {"init": ["ticket-0"]})
    node.checkpoint(uid, {"init": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    assert node.limits(names["init"]) == "init:0:9000"


async def test_two_of_them_with_the_same_tickets_get_their_own_limits(node: Node) -> None:
    uid = await node.pod("p", container("init-1", LARGE, init=True), container("init-2", SMALL, init=True))
    tickets = {"init-1": ["ticket-0"], "init-2": ["ticket-0"]}
    names = await node.admit("p", tickets)
    node.checkpoint(uid, tickets)
    await node.preparer.prepare(["ticket-0"])
    assert [node.limits(names[name]) for name in names] == ["init-1:0:9000", "init-2:0:100"]


async def test_which_of_them_has_a_ticket_is_known_where_the_counts_do_not_tell(node: Node) -> None:
    uid = await node.pod(
        "p",
        container("init-both", share(0, 5), share(1, 5), init=True),
        container("init-large", LARGE, init=True),
        container("init-small", SMALL, init=True),
        container("main", share(0, 500)),
    )
    tickets = {"init-both": ["t-0", "t-1"], "init-large": ["t-0"], "init-small": ["t-1"], "main": ["t-1"]}
    names = await node.admit("p", tickets)
    node.checkpoint(uid, tickets)
    for each in tickets.values():
        await node.preparer.prepare(each)
    assert [node.limits(names[name]) for name in names] == [
        "init-both:0:5 init-both:1:5",
        "init-large:0:9000",
        "init-small:0:100",
        "main:0:500",
    ]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"other": ["ticket-1"]}, "assigns them to none"),
        ({"init": ["ticket-0", "ticket-1"]}, "assigns them to none"),
    ],
)
async def test_an_entry_of_other_tickets_identifies_nothing(
    node: Node, entries: dict[str, list[str]], why: str
) -> None:
    uid = await node.pod("p", container("init", init=True))
    await node.admit("p", {"init": ["ticket-0"]})
    node.checkpoint(uid, entries)
    with pytest.raises(NotYet, match=why):
        await node.preparer.prepare(["ticket-0"])


async def test_an_entry_of_a_pod_that_is_gone_or_elsewhere_identifies_nothing(node: Node) -> None:
    elsewhere = await node.pod("q", container("init", init=True), node="node-2")
    await node.admit("p", {"init": ["ticket-0"]})
    for uid in ("gone", elsewhere):
        node.checkpoint(uid, {"init": ["ticket-0"]})
        with pytest.raises(NotYet, match=f"the UID {uid}, which node-1 does not have"):
            await node.preparer.prepare(["ticket-0"])


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"{}", b'{"Data": {}}', b'{"Data": {"PodDeviceEntries": [{"PodUID": 1}]}}', b"\xff"]
)
async def test_a_checkpoint_of_another_form_identifies_nothing(node: Node, text: bytes) -> None:
    await node.pod("p", container("init", init=True))
    await node.admit("p", {"init": ["ticket-0"]})
    node.files.write(node.context.settings.kubelet_dir / CHECKPOINT, text)
    with pytest.raises(NotYet, match="cannot read kubelet's file"):
        await node.preparer.prepare(["ticket-0"])


async def test_a_name_waits_as_long_as_the_init_containers_before_it_run(node: Node) -> None:
    uid = await node.pod("p", container("init-1", LARGE, share(1), init=True), container("init-2", SMALL, init=True))
    tickets = {"init-1": ["ticket-0", "ticket-1"], "init-2": ["ticket-1"]}
    names = await node.admit("p", tickets)
    node.checkpoint(uid, tickets)
    await node.preparer.prepare(tickets["init-1"])
    for _ in range(3):
        await node.releaser.reconcile()
        await node.clock.advance(UNCLAIMED_S)
    await node.preparer.prepare(tickets["init-2"])
    assert node.limits(names["init-2"]) == "init-2:0:100"


async def test_a_sidecar_is_listed_and_is_itself(node: Node) -> None:
    await node.pod("p", container("side", SMALL, init=True, sidecar=True), container("main", LARGE))
    names = await node.admit("p", {"side": ["ticket-0"], "main": ["ticket-1"]})
    await node.preparer.prepare(["ticket-0"])
    await node.preparer.prepare(["ticket-1"])
    assert node.limits(names["side"]) == "side:0:100"
    assert node.limits(names["main"]) == "main:0:9000"


def names_of(*containers: str | None, uid: str = "uid") -> list[Holding]:
    """Allocations of one ticket, named 0, 1 and so on, bound to these containers of the pod; None is not bound."""
    tickets = frozenset({"ticket-0"})
    return [
        Holding(
            name=str(number),
            tickets=tickets,
            bound=None
            if name is None
            else Bound(namespace="default", pod="p", pod_uid=uid, container=name, grant=container(name)),
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


def given(allocations: list[Holding], granted: Grant, holder: str) -> list[str]:
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
    others = [*names_of("main", uid="other"), Holding(name="9", tickets=frozenset({"ticket-0"}))]
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
