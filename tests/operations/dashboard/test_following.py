"""Documents of one cluster after the other: each as if it were the first, although only what changed is read again."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest

from lamina.core.gpus import Inventory
from lamina.core.objects import write_spec
from lamina.operations.dashboard import pod_cards
from lamina.operations.dashboard.document import ClusterDocument
from lamina.operations.dashboard.pod_cards import PodCards
from lamina.operations.dashboard.view import NodeCondition, document_of
from lamina.ports.kube import Object
from lamina.report import cluster_reader
from lamina.report.cluster_reader import ClusterObjects, ClusterReader, view_of
from tests.worlds.clusters import container, grant, inventory, pod

READY = {"n": NodeCondition()}


def of_node(each: Inventory) -> Object:
    return {"metadata": {"name": each.node}, "spec": write_spec(each)}


def granted(runs: Object, memory_mib: int) -> Object:
    made = grant(runs, "n", memory_mib)
    return {**made, "metadata": {**made["metadata"], "uid": f"grant-{runs['metadata']['uid']}"}}


def configuration(text: str) -> Object:
    return {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}


def moments() -> Iterator[ClusterObjects]:
    """A cluster that changes: what stays is the same object."""
    node = of_node(inventory())
    waits, runs = pod("waits", container(gpu=1, gpumem=12000)), pod("runs", container(gpu=1, gpumem=4000), node="n")
    odd = pod("odd", container(gpu=1))
    odd["metadata"].pop("uid")
    now = ClusterObjects([node], [], [waits, odd], [])
    yield now
    yield (now := now._replace(pods=[waits, odd, runs], grants=[granted(runs, 4000)]))
    yield (now := now._replace(grants=[granted(runs, 2000)]))
    failed = {**runs, "status": {"phase": "Failed", "message": "out of luck"}}
    yield now._replace(pods=[waits, failed])
    yield now
    found = inventory(gpus=2)
    sick = msgspec.structs.replace(found.gpus[1], healthy=False, reason="XID 79")
    yield now._replace(inventories=[of_node(msgspec.structs.replace(found, gpus=(found.gpus[0], sick)))])
    yield now._replace(inventories=[{"metadata": {"name": "n"}, "spec": {"gpus": 7}}])
    yield now._replace(config_map=configuration("hami: {resourceCountName: example.com/share}\n"))
    yield now._replace(pods=[])
    yield now


def test_each_document_is_as_if_it_were_the_first() -> None:
    reader, cards = ClusterReader(), PodCards()
    seen: list[ClusterDocument] = []
    for number, objects in enumerate(moments()):
        for refused in ({}, {("default", "uid-default-runs"): f"Refused at {number}."}):
            document = document_of(reader.view_of(objects), READY, refused, cards)
            assert document == document_of(view_of(objects), READY, refused), number
        seen.append(document)
    assert all(before != after for before, after in itertools.pairwise(seen)), "each moment is another one"


def test_only_what_changed_is_read_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    parse, make = cluster_reader.parse_pod, pod_cards._card
    monkeypatch.setattr(
        cluster_reader, "parse_pod", lambda pod, config: read.append(pod["metadata"]["name"]) or parse(pod, config)
    )
    made: list[str] = []
    monkeypatch.setattr(
        pod_cards,
        "_card",
        lambda cluster, pod, *others: made.append(pod["metadata"]["name"]) or make(cluster, pod, *others),
    )
    pods = [pod(f"p{number}", container(gpu=1, gpumem=1000), node="n") for number in range(5)]
    waits = pod("waits", container(gpu=1, gpumem=99999))
    grants = [granted(each, 1000) for each in pods]
    reader, cards = ClusterReader(), PodCards()
    objects = ClusterObjects([of_node(inventory())], grants, [*pods, waits], [])
    for _ in range(2):
        before = document_of(reader.view_of(objects), READY, {}, cards)
    assert read == ["p0", "p1", "p2", "p3", "p4", "waits"] and made == [*read, "waits"]
    pods[3] = {**pods[3], "status": {"phase": "Unknown"}}
    after = document_of(reader.view_of(objects._replace(pods=[*pods, waits])), READY, {}, cards)
    assert read[6:] == ["p3"] and made[7:] == ["p3", "waits"]
    assert [uid for uid in after.pods if after.pods[uid] is not before.pods[uid]] == [
        "uid-default-p3",
        "uid-default-waits",
    ]
