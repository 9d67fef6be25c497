"""A pool scales from zero: what an autoscaler simulates with the template of `docs/how-to/autoscale.md`.

Cluster Autoscaler counts what a pod requests against the amounts of a template node, extended resources included. A
build that has extenders asks them next, with the whole template node. Both are played here, the second over HTTP.
"""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lamina.ports.kube import EVENTS, GRANTS, INVENTORIES, NODES, Object
from lamina.ports.kube.fake import FakeKube
from lamina_lab.scheduler.rules.filters import insufficient
from lamina_lab.scheduler.rules.node_view import NodeView
from lamina_lab.scheduler.rules.pod_requests import amounts
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus, inventory_object

PAGE = Path(__file__).parents[2] / "docs/how-to/autoscale.md"
TAG = re.compile(r"^\s*k8s\.io/cluster-autoscaler/node-template/(label|resources)/(\S+): \"?([^\"\n]+)\"?$", re.M)
MIB = 40960
NEW = "template-node-for-a100-1"


def template(**changes: str | None) -> Object:
    """The Node that Cluster Autoscaler makes of the documented tags; `changes` set or remove nvidia.com/gpu labels."""
    found = TAG.findall(PAGE.read_text())
    labels = {name: value for kind, name, value in found if kind == "label"}
    resources = {name: value for kind, name, value in found if kind == "resources"}
    changed = labels | {f"nvidia.com/gpu.{key}": value for key, value in changes.items()}
    return {
        "metadata": {"name": NEW, "labels": {key: value for key, value in changed.items() if value is not None}},
        "status": {"allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110"} | resources},
    }


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    async with running(FakeKube(), tmp_path, ("small", gpus(1, memory=4096))) as made:
        yield made


def counted(pod: Object, node: Object) -> list[str]:
    """What the autoscaler finds lacking by itself. It does not know which resources an extender manages."""
    return insufficient(pod, NodeView(node, amounts(node["status"]["allocatable"])), ignored=())


async def simulate(cluster: RunningController, pod: Object, *nodes: Object) -> tuple[list[str], Mapping[str, str]]:
    """The names of the nodes that the extender lets pass, and why not the others."""
    answer = await cluster.scheduler.ask("filter", {"pod": pod, "nodes": {"items": list(nodes)}})
    assert answer["error"] == ""
    return [node["metadata"]["name"] for node in answer["nodes"]["items"]], answer["failedNodes"]


async def test_a_pool_scales_from_zero(cluster: RunningController) -> None:
    pod = await cluster.make(admitted_pod(gpumem=20000, gpucores=30))
    answer = await cluster.scheduler.filter(pod, "small")
    assert answer["nodenames"] == [], "no existing node has room"
    assert counted(pod, template()) == []
    assert (await simulate(cluster, pod, template()))[0] == [NEW]

    node = await cluster.kube.create(NODES, template() | {"metadata": {"name": "new", "labels": {}}})
    await until(lambda: refuses(cluster, pod, node), clock=cluster.clock)
    assert "offers no GPUs" in await cluster.scheduler.bind(pod, "new")
    assert (await cluster.kube.list(GRANTS)).items == []

    await cluster.kube.create(INVENTORIES, inventory_object("new", *gpus(8, memory=MIB)))
    await until(lambda: fits(cluster, pod), clock=cluster.clock)
    assert await cluster.scheduler.bind(pod, "new") == ""
    assert [grant["spec"]["node"] for grant in (await cluster.kube.list(GRANTS)).items] == ["new"]


async def refuses(cluster: RunningController, pod: Object, node: Object) -> bool:
    """Whether the extender knows that the node exists, and so waits for its Inventory."""
    return (await simulate(cluster, pod, node))[1] == {"new": "no GPU is offered on this node"}


async def fits(cluster: RunningController, pod: Object) -> bool:
    return bool((await cluster.scheduler.filter(pod, "new"))["nodenames"])


@pytest.mark.parametrize(
    ("limits", "changes", "reason"),
    [
        ({"gpumem": MIB}, {}, ""),
        ({"gpumem": MIB + 1}, {}, f"needs {MIB + 1} MiB; the largest GPU has {MIB} MiB"),
        ({"gpu": 8}, {}, ""),
        ({"gpu": 9}, {}, "needs 9 GPUs; this node has 8"),
        ({"gpu": 8}, {"count": "4"}, "needs 8 GPUs; this node has 4"),
        ({"gpumem": MIB}, {"memory": None}, ""),  # the product is known
        ({"gpumem": 1}, {"memory": None, "product": "Unknown"}, "how much memory"),
        ({"gpumem": 1}, {"memory": "0", "product": None}, "how much memory"),
        ({"gpumem": 1}, {"count": "0"}, "describes no GPU"),
        ({"gpumem": 1}, {"count": "1000000000000000"}, "more than 128 GPUs"),
        ({"gpumem": 1}, {"count": "many"}, "cannot be read"),
        ({"gpumem": 1}, {"replicas": "4", "sharing-strategy": "time-slicing"}, "no GPU is offered"),
        ({"gpumem": 1}, {"deploy.device-plugin": "true"}, "exclude it"),
    ],
)  # fmt: skip
async def test_a_template_is_judged_by_its_labels(
    cluster: RunningController, limits: dict[str, int], changes: dict[str, str | None], reason: str
) -> None:
    fitting, refused = await simulate(cluster, await cluster.make(admitted_pod(**limits)), template(**changes))
    if reason:
        assert fitting == [] and reason in refused[NEW]
    else:
        assert (fitting, refused) == ([NEW], {})


async def test_existing_nodes_are_judged_by_their_inventories(cluster: RunningController) -> None:
    """Whatever labels the autoscaler sends with them."""
    pod = await cluster.make(admitted_pod(gpumem=20000))
    existing: dict[str, Any] = template() | {"metadata": {**template()["metadata"], "name": "small"}}
    fitting, refused = await simulate(cluster, pod, existing, template())
    assert fitting == [NEW] and refused == {"small": "needs 20000 MiB; the largest GPU has 4096 MiB"}


async def test_a_simulation_leaves_no_event(cluster: RunningController) -> None:
    pod = await cluster.make(admitted_pod(gpumem=MIB + 1))
    await simulate(cluster, pod, template())
    await cluster.scheduler.filter(pod, "small")
    await until(lambda: events(cluster), clock=cluster.clock)
    assert [event["count"] for event in await events(cluster)] == [1], "one of the scheduler's question"


async def events(cluster: RunningController) -> list[Object]:
    found = (await cluster.kube.list(EVENTS)).items
    return [event for event in found if event["reason"] == "NoGpuFits"]


async def test_amounts_are_what_the_autoscaler_counts(cluster: RunningController) -> None:
    """Without them it finds that no new node would help, whatever the extender says."""
    pod, bare = admitted_pod(gpumem=20000), template()
    bare["status"]["allocatable"].pop("nvidia.com/gpumem")
    assert counted(pod, bare) == ["Insufficient nvidia.com/gpumem"]
