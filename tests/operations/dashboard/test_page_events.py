"""What one page is sent: what it shows first where there are many pods, and little where little has changed."""

import json
from typing import Any

import msgspec
import pytest

from bench.dashboard.cluster import GPUS, SHARES, cluster
from lamina.operations.dashboard.answers import FIRST_PODS, PageEvents, SharedEvents
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument, GpuPart
from lamina.operations.dashboard.viewers import EVERYTHING, ViewerAccess
from lamina.report.cluster_use import ClusterUse, ShareFigures
from tests.operations.dashboard.pages import gpu, node, running

NODES, WAITING = 1000, 4000
PODS = NODES * GPUS * SHARES + WAITING


def read(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.decode().split("data: ")[1])
    return found


@pytest.mark.parametrize(("view", "second_part"), [("", "nodes"), ("pods", "pods"), ("pod", "pods")])
def test_a_page_of_many_pods_gets_figures_then_what_it_shows_then_the_rest(view: str, second_part: str) -> None:
    pods = {f"u{number}": running(f"p{number}") for number in range(FIRST_PODS + 1)}
    parts = [GpuPart(pod="", name=f"{name}/p", namespace=name, memory_mib=1, cores=1) for name in ("b", "a", "")]
    board = Board()
    board.post(ClusterDocument(nodes={"n": node("n", gpu("n", 0, *parts))}, pods=pods))
    events = PageEvents(SharedEvents(board), view)
    first, second, third = (read(events.next(board.current, "team")) for _ in range(3))
    assert [each["first"] for each in (first, second, third)] == [True, False, False]
    assert [sum(each["loaded"].values()) for each in (first, second, third)] == [0, 1, 2]
    assert second["loaded"][second_part] and first["holders"] == ["a", "b"] and second["holders"] is None
    sent = {"nodes": {"n"}, "pods": set(pods)}
    other = "pods" if second_part == "nodes" else "nodes"
    for part, event in ((second_part, second), (other, third)):
        assert set(event["changes"][part]) == sent[part] and first["changes"][part] == {}
    assert first["waiting"] == [] and second["waiting"] is None is third["attention"]
    assert events.next(board.current, "team").startswith(b"event: beat")


@pytest.mark.parametrize("view", ["map", "node", "gpu"])
def test_a_page_that_shows_nothing_without_nodes_gets_them_with_the_figures(view: str) -> None:
    board = Board()
    board.post(cluster(2, changed=0, waiting=FIRST_PODS))
    events = PageEvents(SharedEvents(board), view)
    first, second = (read(events.next(board.current, "team")) for _ in range(2))
    assert first["loaded"] == {"nodes": True, "pods": False} and second["loaded"] == {"nodes": True, "pods": True}
    assert len(first["changes"]["nodes"]) == 2 and not first["changes"]["pods"] and not second["changes"]["nodes"]
    assert events.next(board.current, "team").startswith(b"event: beat")


def test_an_update_of_twenty_thousand_pods_has_what_changed() -> None:
    board = Board()
    board.post(cluster(NODES, changed=0, waiting=WAITING))
    events = PageEvents(SharedEvents(board))
    for _ in range(3):
        whole = events.next(board.current, "team")
    assert len(read(whole)["changes"]["pods"]) == PODS and len(whole) > 1_000_000
    board.post(cluster(NODES, 1, changed=1, waiting=WAITING))
    assert len(events.next(board.current, "team")) < 5_000


def test_a_reading_of_metrics_sends_figures_alone() -> None:
    document = cluster(100, changed=0, waiting=0)
    board = Board()
    board.post(document)
    events = PageEvents(SharedEvents(board))
    for _ in range(3):
        events.next(board.current, "team")
    use = ClusterUse()
    for card in document.pods.values():
        use.shares[card.namespace, card.name, "main"] = {
            card.shares[0].gpu: ShareFigures(used_mib=1, busy_percent=50.0)
        }
    board.use(use, "", 5.0)
    sent = msgspec.structs.asdict(board.current.document)["pods"]
    assert len(events.next(board.current, "team")) < 250 * len(sent)


def test_pages_that_have_the_same_and_may_see_the_same_share_their_events() -> None:
    """Many people look at one cluster, and what each gets is made in the loop that serves all."""
    board = Board()
    shared = SharedEvents(board)
    team = ViewerAccess(nodes=True, everywhere=False, namespaces=frozenset({"team"}))
    early, same, other = (PageEvents(shared) for _ in range(3))
    for generation in range(3):
        board.post(cluster(2, generation, changed=1, waiting=3))
        event = early.next(board.current, "team")
        assert same.next(board.current, "team") is event
        assert other.next(board.current, "team", team) is not event
    late = PageEvents(shared)
    assert read(late.next(board.current, "team"))["first"] and not read(event)["first"]
    board.post(cluster(2, 3, changed=1, waiting=3))
    assert len({id(page.next(board.current, "team")) for page in (early, same, late)}) == 1


def test_a_viewer_who_may_see_something_else_gets_an_event_of_the_same_version() -> None:
    board = Board()
    board.post(cluster(2, changed=0, waiting=3))
    events, less = PageEvents(SharedEvents(board)), ViewerAccess(nodes=False, everywhere=True)
    assert not read(events.next(board.current, "team", EVERYTHING))["nodes_hidden"]
    assert read(events.next(board.current, "team", less))["nodes_hidden"]
    assert events.next(board.current, "team", less).startswith(b"event: beat")
