"""What needs attention, and which pods wait for one reason: links that lead there, and nothing without end."""

from typing import Any

import msgspec
import pytest

from lamina.operations.dashboard.attention import MAX_GROUPS, MAX_NAMES, MAX_ROWS, Link, attention, waiting_groups
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, HealthSpan, PodCard
from lamina.operations.dashboard.viewers import ViewerAccess, visible
from tests.operations.dashboard.pages import gpu, node, running
from tests.operations.dashboard.viewers import two_teams


def waits(name: str, **fields: Any) -> PodCard:
    return PodCard(**{"namespace": "team", "name": name, "state": "pending", "reason": "too large"} | fields)


def figures(**fields: Any) -> ClusterDocument:
    return ClusterDocument(cluster=ClusterFigures(**fields))


def with_gpu(**fields: Any) -> ClusterDocument:
    return ClusterDocument(nodes={"n": node("n", gpu("n", 0, **fields))})


def test_a_cluster_without_faults_needs_none() -> None:
    document = ClusterDocument(nodes={"n": node("n", gpu("n", 0))}, pods={"u": running("web")})
    assert attention(document) == () == waiting_groups(document.pods.items())
    assert attention(ClusterDocument()) == ()


@pytest.mark.parametrize(
    ("document", "text", "link", "since"),
    [
        (figures(configuration="x"), "The previous configuration is in force: x", None, None),
        (figures(left_out=1), "1 pod could not be read", None, None),
        (figures(nodes_without_inventory=2), "2 nodes with GPUs and no agent", None, None),
        (ClusterDocument(nodes={"n": node("n", ready=False)}), "Node n is not ready", Link("node", "n"), None),
        (ClusterDocument(nodes={"n": node("n", cordoned=True)}), "Node n is cordoned", Link("node", "n"), None),
        (ClusterDocument(nodes={"n": node("n", refused=("a: b",))}), "Node n refuses a: b", Link("node", "n"), None),
        (
            with_gpu(healthy=False, reason="XID 79", health=(HealthSpan(7, "unhealthy"),)),
            "GPU 0 of n is unhealthy: XID 79", Link("gpu", "GPU-n-0"), 7,
        ),
        (with_gpu(cordoned=True), "GPU 0 of n is cordoned", Link("gpu", "GPU-n-0"), None),
        (ClusterDocument(pods={"u": waits("p", created=9)}), "team/p waits: too large", Link("pod", "u"), 9),
        (
            ClusterDocument(pods={"u": msgspec.structs.replace(running("p"), refused_memory="Refused at 1.")}),
            "team/p is out of GPU memory. Refused at 1.", Link("pod", "u"), None,
        ),
    ],
)  # fmt: skip
def test_each_fault_is_a_row(document: ClusterDocument, text: str, link: Link | None, since: int | None) -> None:
    [row] = attention(document)
    assert row.text.startswith(text) and (row.link, row.since) == (link, since)


def test_replicas_that_ran_out_of_memory_are_one_row() -> None:
    pods = {
        f"u{at}": msgspec.structs.replace(running(f"p{at}"), workload=workload, refused_memory=f"Refused at {at}.")
        for at, workload in enumerate(["Deployment/web", "Deployment/web", "Job/train", "", ""])
    }
    assert [(row.text, row.link) for row in attention(ClusterDocument(pods=pods))] == [
        ("2 pods of Deployment/web in team are out of GPU memory. Refused at 1.", Link("pod", "u1")),
        ("team/p2 is out of GPU memory. Refused at 2.", Link("pod", "u2")),
        ("team/p3 is out of GPU memory. Refused at 3.", Link("pod", "u3")),
        ("team/p4 is out of GPU memory. Refused at 4.", Link("pod", "u4")),
    ]


def test_the_pods_that_wait_longest_come_first() -> None:
    pods = {f"u{age}": waits(f"p{age}", created=1000 - age) for age in range(9)}
    assert [row.text.split()[0] for row in attention(ClusterDocument(pods=pods))] == [
        f"team/p{8 - i}" for i in range(5)
    ]


def test_many_faults_of_a_kind_are_counted() -> None:
    cards = [gpu("n", index, healthy=False, reason="XID 79") for index in range(MAX_ROWS + 7)]
    rows = attention(ClusterDocument(nodes={"n": node("n", *cards)}))
    assert len(rows) == MAX_ROWS + 1 and rows[-1].text == "and 7 more"


def test_pods_with_one_reason_are_a_group() -> None:
    pods = {f"u{number}": waits(f"p{number}") for number in range(MAX_NAMES + 5)}
    pods |= {"o": waits("other", reason="quota"), "r": waits("r", state="refused"), "run": running("web")}
    pods["w"] = waits("deployment/web", state="refused")
    first, *others = waiting_groups(pods.items())
    assert (first.title, first.count, len(first.pods)) == (f"{MAX_NAMES + 5} pods pending", MAX_NAMES + 5, MAX_NAMES)
    assert first.pods[0] == ("u0", "team/p0")
    assert {each.title for each in others} == {"1 pod pending", "1 pod refused", "1 workload whose pods are refused"}


def test_reasons_without_end_have_one() -> None:
    pods = {f"u{number}": waits(f"p{number}", reason=f"{number}") for number in range(MAX_GROUPS + 9)}
    assert len(waiting_groups(pods.items())) == MAX_GROUPS


@pytest.mark.parametrize(
    ("access", "faults", "names"),
    [
        (ViewerAccess(nodes=False, everywhere=False, namespaces=frozenset({"team-b"})), 0, []),
        (ViewerAccess(nodes=False, everywhere=False, namespaces=frozenset({"team-a"})), 1, ["team-a/waits"]),
        (ViewerAccess(nodes=True, everywhere=False), 1, []),
        (ViewerAccess(nodes=True, everywhere=True), 2, ["team-a/waits"]),
    ],
)
def test_viewers_hear_only_of_what_they_may_list(access: ViewerAccess, faults: int, names: list[str]) -> None:
    document = two_teams()
    waiting = msgspec.structs.replace(document.pods["w"], created=5)
    nodes = {"n": msgspec.structs.replace(document.nodes["n"], ready=False)}
    seen = visible(msgspec.structs.replace(document, nodes=nodes, pods={**document.pods, "w": waiting}), access)
    assert len(attention(seen)) == faults
    assert [name for group in waiting_groups(seen.pods.items()) for _, name in group.pods] == names
