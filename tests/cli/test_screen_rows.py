"""What a filter chooses of the rows of `lamina top`, and their order."""

import itertools

import pytest

from lamina.cli.screen.rows import (
    ORDERS,
    chosen_gpus,
    chosen_pods,
    gpus_in_order,
    parse_filter,
    pod_line,
    pods_in_order,
)
from lamina.errors import BadInput
from lamina.report.pods import UnplacedPod
from lamina.report.shares import PodShare
from tests.cli.screen_world import busy_cluster, gpu, share

TWO = (share("web", node="one"), share("db", node="two", namespace="ops", model="NVIDIA A100", status="Failed"))


def names(text: str, *rows: PodShare | UnplacedPod) -> list[str]:
    return [row.pod for row in chosen_pods(map(pod_line, rows), parse_filter(text))]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ["web", "db"]),
        ("web", ["web"]),
        ("main", ["web", "db"]),
        ("ops", ["db"]),
        ("node=two", ["db"]),
        ("namespace=OPS", ["db"]),
        ("model=a100", ["db"]),
        ("status=fail", ["db"]),
        ("container=main web", ["web"]),
        ("pod=ops", []),
        ("node=one db", []),
        ("web db", []),
    ],
)
def test_all_words_have_to_be_there(text: str, left: list[str]) -> None:
    assert names(text, *TWO) == left


@pytest.mark.parametrize("text", ["size=1", "=x", "web size=1", "pods=a"])
def test_other_fields_are_refused_by_name(text: str) -> None:
    with pytest.raises(BadInput, match="a filter is one of node, namespace, pod, container, model, status and =, or"):
        parse_filter(text)


def test_gpus_are_chosen_by_their_pods_too() -> None:
    rows = (gpu(0), gpu(1, pods=("ops/db", "team/other (held)")), gpu(2, pods=()), gpu(3, pods=("alone",)))

    def left(text: str) -> list[int]:
        return [row.index for row in chosen_gpus(rows, parse_filter(text))]

    assert left("namespace=ops") == [1] and left("team") == [0, 1] and left("pod=alone") == [3]
    assert left("ops/db") == [] and left("status=healthy") == [0, 1, 2, 3]


def test_the_largest_comes_first_and_what_is_not_known_last_in_either_direction() -> None:
    rows = [pod_line(share(name, used_mib=used)) for name, used in (("a", 5), ("b", None), ("c", 9), ("d", 0))]
    assert [row.pod for row in pods_in_order(rows, "used", reverse=False)] == ["c", "a", "d", "b"]
    assert [row.pod for row in pods_in_order(rows, "used", reverse=True)] == ["d", "a", "c", "b"]


def test_the_fullest_is_not_the_largest() -> None:
    rows = [
        pod_line(share(name, used_mib=used, limit_mib=limit)) for name, used, limit in (("a", 9, 100), ("b", 8, 10))
    ]
    assert [row.pod for row in pods_in_order(rows, "full", reverse=False)] == ["b", "a"]
    assert [row.pod for row in pods_in_order(rows, "used", reverse=False)] == ["a", "b"]


def test_equal_rows_are_by_name() -> None:
    rows = [pod_line(share(name)) for name in ("c", "a", "b")]
    for rest in itertools.permutations(rows):
        assert [row.pod for row in pods_in_order(rest, "used", reverse=False)] == ["a", "b", "c"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_each_order_takes_each_row(order: str, reverse: bool) -> None:
    reading = busy_cluster()
    lines = [pod_line(row) for row in (*reading.shares, *TWO)] + [pod_line(row) for row in reading.waiting]
    assert sorted(pods_in_order(lines, order, reverse=reverse), key=repr) == sorted(lines, key=repr)
    assert len(gpus_in_order(reading.gpus, order, reverse=reverse)) == len(reading.gpus)
