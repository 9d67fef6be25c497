"""What one page is sent: its nodes first where there are many pods, and little where little has changed."""

import json
from typing import Any

import msgspec

from bench.dashboard.cluster import GPUS, SHARES, cluster
from lamina.operations.dashboard.answers import FIRST_PODS, PageEvents
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.document import ClusterDocument, NodeCard
from lamina.report.cluster_use import ClusterUse, ShareFigures
from tests.operations.dashboard.pages import running

NODES, WAITING = 1000, 4000
PODS = NODES * GPUS * SHARES + WAITING


def read(event: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.decode().split("data: ")[1])
    return found


def test_a_page_of_many_pods_gets_its_nodes_first() -> None:
    pods = {f"u{number}": running(f"p{number}") for number in range(FIRST_PODS + 1)}
    board = Board()
    board.post(ClusterDocument(nodes={"n": NodeCard(name="n")}, pods=pods))
    events = PageEvents(board)
    first, second = read(events.next(board.current, "team")), read(events.next(board.current, "team"))
    assert [each["first"] for each in (first, second)] == [True, False]
    assert [each["complete"] for each in (first, second)] == [False, True]
    assert set(first["changes"]["nodes"]) == {"n"} and first["changes"]["pods"] == {}
    assert set(second["changes"]["pods"]) == set(pods) and second["changes"]["nodes"] == {}
    assert first["waiting"] == [] and second["waiting"] is None
    assert events.next(board.current, "team").startswith(b"event: beat")


def test_an_update_of_twenty_thousand_pods_has_what_changed() -> None:
    board = Board()
    board.post(cluster(NODES, changed=0, waiting=WAITING))
    events = PageEvents(board)
    for _ in range(2):
        whole = events.next(board.current, "team")
    assert len(read(whole)["changes"]["pods"]) == PODS and len(whole) > 1_000_000
    board.post(cluster(NODES, 1, changed=1, waiting=WAITING))
    assert len(events.next(board.current, "team")) < 5_000


def test_a_reading_of_metrics_sends_figures_alone() -> None:
    document = cluster(100, changed=0, waiting=0)
    board = Board()
    board.post(document)
    events = PageEvents(board)
    for _ in range(2):
        events.next(board.current, "team")
    use = ClusterUse()
    for card in document.pods.values():
        use.shares[card.namespace, card.name, "main"] = {
            card.shares[0].gpu: ShareFigures(used_mib=1, busy_percent=50.0)
        }
    board.use(use, "", 5.0)
    sent = msgspec.structs.asdict(board.current.document)["pods"]
    assert len(events.next(board.current, "team")) < 250 * len(sent)
