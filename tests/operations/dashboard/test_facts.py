"""What the page says of pods and nodes besides their GPUs: whose they are, and what is granted of them costs."""

import json
from dataclasses import replace

import msgspec
import pytest

from lamina.configuration import DEFAULT
from lamina.core.gpus import Mode
from lamina.core.grants import Share
from lamina.core.prices import GpuPrice, Pricing
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuPart
from lamina.operations.dashboard.usage import with_usage
from lamina.operations.dashboard.view import NodeCondition, condition_of, document_of
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse, GpuLoad
from tests.operations.dashboard.documents import held, shown
from tests.operations.dashboard.pages import gpu, node
from tests.worlds.clusters import T4, cluster, container, inventory, pod


async def test_a_pod_says_whose_it_is_since_when_and_how_urgent() -> None:
    owned = pod("web-5d8f-x", container(gpu=1, gpumem=1000))
    owned["metadata"] |= {
        "creationTimestamp": "2026-11-30T10:00:00Z",
        "labels": {"pod-template-hash": "5d8f"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d8f", "controller": True}],
    }
    owned["spec"] |= {"priority": 7, "priorityClassName": "high"}
    (card,) = (await shown(inventory(), owned)).pods.values()
    assert (card.workload, card.created) == ("Deployment/web", 1796032800)
    assert (card.priority, card.priority_class) == (7, "high")


@pytest.mark.parametrize(
    ("mode", "priority", "shown_priority"), [("quota", 0, 0), ("quota", None, None), ("mig", 0, None)]
)
async def test_a_share_has_its_latency_class_where_its_mode_has_one(
    mode: str, priority: int | None, shown_priority: int | None
) -> None:
    share = Share(gpu="GPU-n-0", memory_mib=4000, mode=Mode(mode))
    (card,) = (await shown(inventory(), *held("a", share, priority=priority))).pods.values()
    assert [each.priority for each in card.shares] == [shown_priority]


async def test_parts_of_gpus_say_whose_they_are() -> None:
    document = await shown(inventory(), *held("a", Share(gpu="GPU-n-0", memory_mib=4000)))
    (part,) = document.nodes["n"].gpus[0].parts
    assert (part.namespace, part.workload) == ("default", "Pod/a")


@pytest.mark.parametrize(("model", "cost"), [("T4", 0.5), ("A100", None)])
async def test_what_is_granted_costs_something_where_its_gpu_has_a_price(model: str, cost: float | None) -> None:
    pricing = Pricing(currency="EUR", gpus=(GpuPrice(model=model, per_hour=2.0),))
    objects = await cluster(inventory(), *held("a", Share(gpu="GPU-n-0", memory_mib=T4 // 4, cores=25)))
    view = replace(await cluster_reader.read(objects), config=msgspec.structs.replace(DEFAULT, pricing=pricing))
    figures = document_of(view, {"n": NodeCondition()}).cluster
    assert figures.cost_per_hour == (None if cost is None else pytest.approx(cost))
    assert figures.unpriced_gpus == (cost is None) and figures.currency == "EUR"


def test_nodes_have_their_pool_and_those_with_gpus_are_to_be_served() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "large", "nvidia.com/gpu.present": "true"}
    condition = condition_of({"metadata": {"name": "n", "labels": labels}})
    assert condition.pool == "large" and condition.to_be_served
    kept_out = condition_of({"metadata": {"name": "n", "labels": labels | {"lamina.dev/agent": "false"}}})
    assert not kept_out.to_be_served and not condition_of({"metadata": {"name": "n"}}).to_be_served


async def test_nodes_with_gpus_and_no_inventory_are_counted_without_their_names() -> None:
    conditions = {"n": NodeCondition(to_be_served=True), "secret": NodeCondition(to_be_served=True)}
    document = await shown(inventory(), conditions=conditions)
    assert document.cluster.nodes_without_inventory == 1 and "secret" not in json.dumps(msgspec.to_builtins(document))


def test_the_use_of_gpus_is_on_their_cards_and_in_the_sums() -> None:
    held_part = GpuPart(pod="u", name="team/p", memory_mib=4000, cores=0)
    before = ClusterDocument(
        cluster=ClusterFigures(gpus=2), nodes={"n": node("n", gpu("n", 0, held_part), gpu("n", 1))}
    )
    use = ClusterUse()
    use.gpus["GPU-n-0"] = GpuLoad(used_mib=900, busy_percent=40.4, node="n")
    use.gpus["GPU-n-1"] = GpuLoad(busy_percent=20.0, node="n")
    after = with_usage(before, use)
    assert [(each.used_mib, each.busy_percent) for each in after.nodes["n"].gpus] == [(900, 40), (None, 20)]
    assert (after.cluster.used_mib, after.cluster.busy_percent) == (900, 30.2)
    assert with_usage(before, ClusterUse()) is before
