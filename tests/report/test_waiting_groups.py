"""What views say of a pod whose group keeps it waiting."""

from typing import Any

import pytest

from lamina.dialects.groups import GROUP_LABEL
from lamina.ports.kube import PLUGIN_POD_GROUPS, Object, Refused
from lamina.report import cluster_reader
from lamina.report.pods import pod_rows
from lamina.report.reasons import waiting_because
from lamina.report.waiting_groups import read_waiting
from tests.report.lines import why
from tests.worlds.clusters import cluster, container, grant, inventory, pod
from tests.worlds.workload_pods import RESOURCES, SPECS, metadata_of

LACKS = (
    "pod group default/g is placed completely or not at all: 3 members must be placed at once, but only 2 can be "
    "placed now"
)


def member(name: str, memory: int = 10000, node: str = "") -> Object:
    made = pod(name, container(gpu=1, gpumem=memory), node=node)
    made["metadata"]["labels"] = {GROUP_LABEL: "g"}
    return made


def group(minimum: Any) -> Object:
    return {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": minimum}}


async def lines_of(name: str, minimum: Any, *objects: Any, groups: bool = True) -> list[str]:
    kube = await cluster(*objects)
    if minimum is not None:
        await kube.create(PLUGIN_POD_GROUPS, group(minimum))
    view = await cluster_reader.read(kube, groups=groups)
    lines = list(why(view, "default", name))
    [row] = [row for row in pod_rows(view, None) if row.pod == name]
    [obj] = [each for each in view.pods if each["metadata"]["name"] == name]
    assert row.reason == waiting_because(view, obj)
    assert not lines[0].startswith(f"{name} is pending: ") or lines[0] == f"{name} is pending: {row.reason}."
    return lines


THREE = [member("a"), member("b"), member("c")]
TWO_NODES = (inventory("n0"), inventory("n1"))


async def test_a_member_without_places_for_the_others_waits_for_them() -> None:
    assert await lines_of("a", 3, *TWO_NODES, *THREE) == [f"a is pending: {LACKS}."]


@pytest.mark.parametrize("kind", SPECS)
async def test_a_pod_of_a_workload_waits_for_the_others_as_well(kind: str) -> None:
    pods = [pod(f"w-{number}", container(gpu=1, gpumem=10000)) for number in range(3)]
    for number, each in enumerate(pods):
        each["metadata"] |= metadata_of(kind, "w", number)
    kube = await cluster(*TWO_NODES, *pods)
    await kube.create(RESOURCES[kind], {"metadata": {"name": "w", "namespace": "default"}, "spec": SPECS[kind]})
    view = await cluster_reader.read(kube, groups=True)
    lacks = LACKS.partition(" is placed ")[2]
    for each in pods:
        part = " (0)" if kind == "LeaderWorkerSet" else ""
        assert waiting_because(view, each) == f"{kind} default/w{part} is placed {lacks}"


@pytest.mark.parametrize(("minimum", "more"), [(2, ()), (3, (inventory("n2"),))])
async def test_a_member_with_places_for_the_others_would_fit_with_them(minimum: int, more: Any) -> None:
    [first, *_] = await lines_of("a", minimum, *TWO_NODES, *THREE, *more)
    assert first.startswith("a would fit now with the rest of its group, ")


async def test_members_that_are_missing_or_a_group_that_is_not_there_are_named() -> None:
    [first] = await lines_of("a", 4, *TWO_NODES, *THREE)
    assert first == "a is pending: pod group default/g waits for its members: 3 of 4 exist."
    [first] = await lines_of("a", None, *TWO_NODES, *THREE)
    assert first == "a is pending: pod group default/g (scheduling.x-k8s.io/v1alpha1) does not exist."
    [first] = await lines_of("a", 0, *TWO_NODES, *THREE)
    assert "minMember must be an integer from 1 to 1000, got 0" in first


async def test_members_on_nodes_count_and_those_beyond_the_minimum_go_alone() -> None:
    placed = member("x", node="n0"), member("y", node="n1")
    grants = [grant(each, each["spec"]["nodeName"], 10000) for each in placed]
    [first, *_] = await lines_of("a", 2, *TWO_NODES, *placed, *grants, member("a", 1000))
    assert first.startswith("a would fit now with the rest of its group")
    [first] = await lines_of("a", 4, *TWO_NODES, *placed, *grants, member("a", 5000), member("b", 6000))
    assert "2 of 4 members have a node; 2 more must be placed at once, but only 1 can be placed now" in first


async def test_a_group_that_may_not_be_read_is_not_known() -> None:
    kube = await cluster(*TWO_NODES, *THREE)
    kube.failing["get"] = lambda resource, name: Refused("no") if resource is PLUGIN_POD_GROUPS else None
    view = await cluster_reader.read(kube, groups=True)
    [first, *_] = why(view, "default", "a")
    assert not view.needed and first.startswith("a would fit now without the rest of its group, ")
    assert (await lines_of("a", 3, *TWO_NODES, *THREE, groups=False))[0].startswith("a would fit now without ")


async def test_each_group_of_pods_that_wait_is_read_once_and_no_other() -> None:
    kube = await cluster(*THREE, member("x", node="n0"), pod("alone", container(gpumem=1)))
    await kube.create(PLUGIN_POD_GROUPS, group(2))
    view = await cluster_reader.read(kube)
    kube.calls.clear()
    assert list((await read_waiting(kube, view.pods)).values()) == [2]
    assert len(kube.calls) == 1
    assert await read_waiting(kube, [each for each in view.pods if each["spec"].get("nodeName")]) == {}
