"""What the page shows of a cluster, and what changes from one moment to the next."""

from typing import Any

import msgspec
import pytest

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Gpu, Inventory, MigDeviceCount, Mode
from lamina.core.grants import ContainerGrant, MigInstance, Share
from lamina.core.mig_devices import NO_STRATEGY
from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.core.survivors import Survivor
from lamina.operations.dashboard.changes import changes
from lamina.operations.dashboard.document import ClusterDocument, NodeCard, PodCard
from lamina.operations.dashboard.stranded import StrandedGpus
from lamina.operations.dashboard.view import NodeCondition, document_of
from lamina.placement import NodeState
from lamina.ports.kube import RESOURCE_QUOTAS
from lamina.report import cluster_reader
from lamina.report import remedies as report_remedies
from tests.operations.dashboard.documents import READY, held, shown
from tests.worlds.clusters import T4, cluster, container, inventory, pod


def with_gpu(**fields: Any) -> Inventory:
    found = inventory()
    return msgspec.structs.replace(found, gpus=(msgspec.structs.replace(found.gpus[0], **fields),))


async def test_an_idle_gpu() -> None:
    document = await shown(inventory())
    (gpu,) = document.nodes["n"].gpus
    assert (gpu.mode, gpu.taken_mib, gpu.parts, gpu.stranded) == ("", 0, (), False)
    assert (document.cluster.gpus, document.cluster.idle_gpus, document.cluster.memory_mib) == (1, 1, T4)


async def test_shares_lead_to_their_pods_and_add_up() -> None:
    first = held("a", Share(gpu="GPU-n-0", memory_mib=4000, cores=30))
    second = held("b", Share(gpu="GPU-n-0", memory_mib=2000))
    document = await shown(inventory(), *first, *second)
    (gpu,) = document.nodes["n"].gpus
    assert [(part.name, part.memory_mib, part.cores) for part in gpu.parts] == [
        ("default/a", 4000, 30),
        ("default/b", 2000, 0),
    ]
    assert (gpu.mode, gpu.taken_mib, gpu.taken_cores, gpu.taken_slots) == ("quota", 6000, 30, 2)
    assert {part.pod for part in gpu.parts} == set(document.pods)
    assert (document.cluster.granted_mib, document.cluster.granted_cores) == (6000, 30)
    (row,) = document.pods["uid-default-a"].shares
    assert (row.container, row.index, row.memory_mib, row.physical_mib, row.cores) == ("main", 0, 4000, 4000, 30)
    assert document.pods["uid-default-a"].limits[0].limits == {"nvidia.com/gpu": "1"}


async def test_a_share_with_a_limit_above_its_guarantee_has_both() -> None:
    document = await shown(inventory(), *held("a", Share(gpu="GPU-n-0", memory_mib=4000, most_memory_mib=9000)))
    (row,) = document.pods["uid-default-a"].shares
    assert (row.memory_mib, row.most_mib) == (4000, 9000)


@pytest.mark.parametrize(
    ("fields", "share", "mode"),
    [
        ({}, {"mode": Mode.WHOLE, "memory_mib": T4}, "whole"),
        ({}, {"mode": Mode.MIG, "memory_mib": 4864, "mig": MigInstance(profile="1g.5gb", start=0)}, "mig"),
        ({"mode": Mode.MPS}, None, "mps"),
        ({"mode": Mode.TIMESLICE}, None, "timeslice"),
    ],
)
async def test_modes(fields: dict[str, Any], share: dict[str, Any] | None, mode: str) -> None:
    pods = held("a", Share(gpu="GPU-n-0", **share)) if share else ()
    document = await shown(with_gpu(**fields), *pods)
    (gpu,) = document.nodes["n"].gpus
    assert gpu.mode == mode
    if mode == "mig":
        assert gpu.parts[0].instances == ("1g.5gb at 0",) and document.pods["uid-default-a"].shares[0].mig
    if mode == "whole":
        assert gpu.parts[0].whole and gpu.taken_cores == 100


async def test_health_and_cordons_of_gpus_and_nodes() -> None:
    document = await shown(with_gpu(healthy=False, reason="XID 79", cordoned=True), conditions={})
    node = document.nodes["n"]
    assert (node.gpus[0].healthy, node.gpus[0].reason, node.gpus[0].cordoned) == (False, "XID 79", True)
    assert not node.ready
    assert (document.cluster.unhealthy_gpus, document.cluster.cordoned_gpus) == (1, 1)
    cordoned = await shown(inventory(), conditions={"n": NodeCondition(cordoned=True)})
    assert cordoned.nodes["n"].cordoned and cordoned.nodes["n"].ready


async def test_a_pending_pod_has_numbers_and_ways_out() -> None:
    waits = pod("waits", container(gpu=1, gpumem=99999))
    card = (await shown(inventory(), waits)).pods["uid-default-waits"]
    assert (card.state, card.reason) == ("pending", "node n: needs 99999 MiB; the largest GPU has 15360 MiB")
    assert card.why[0].startswith("waits is pending: ") and card.ways_out[0].endswith("at most 15360 MiB, on node n.")


async def test_replicas_share_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []

    def search(*arguments: Any) -> list[str]:
        searches.append(arguments)
        return ["Wait."]

    monkeypatch.setattr(report_remedies, "remedies", search)
    replicas = [pod(name, container(gpu=1, gpumem=99999)) for name in "abc"]
    document = await shown(inventory(), *replicas, pod("d", container(gpu=1, gpumem=88888)))
    assert [card.ways_out for card in document.pods.values()] == [("Wait.",)] * 4 and len(searches) == 2


async def test_a_pod_over_its_quota() -> None:
    kube = await cluster(inventory(), pod("p", container(gpu=1, gpumem=2000)))
    hard = {"limits.nvidia.com/gpumem": "1000"}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": hard}})
    card = document_of(await cluster_reader.read(kube), READY).pods["uid-default-p"]
    assert "team" in card.reason and card.ways_out == (
        "It would fit now with at most 1000 MiB, on node n.",
        "Raise the quota of the namespace, or wait until one of its pods ends.",
    )


async def test_refused_pods() -> None:
    wrong = pod("wrong", container(gpumem=-1))
    failed = pod("failed", container(gpu=1), node="n", status={"phase": "Failed", "message": "GPU-1 is not healthy"})
    document = await shown(inventory(), wrong, failed)
    assert {card.name: card.state for card in document.pods.values()} == {"wrong": "refused", "failed": "refused"}
    assert "must be an integer" in document.pods["uid-default-wrong"].reason
    assert document.pods["uid-default-failed"].reason == "GPU-1 is not healthy"
    assert document.cluster.waiting_pods == 2


async def test_pods_without_gpus_and_pods_that_have_succeeded_are_left_out() -> None:
    done = pod("done", container(gpu=1), node="n", status={"phase": "Succeeded"})
    assert (await shown(inventory(), pod("plain", container()), done)).pods == {}


async def test_deleted_pods_whose_processes_run() -> None:
    containers = (ContainerGrant(name="main", shares=(Share(gpu="GPU-n-0", memory_mib=3000),)),)
    survivor = Survivor(namespace="team", pod="old", pod_uid="u", containers=containers)
    node = msgspec.structs.replace(inventory(), survivors=(survivor,))
    document = await shown(node)
    assert document.pods["u"].state == "deleted" and document.nodes["n"].gpus[0].parts[0].name == "team/old"


def claim(memory_mib: int) -> HeldClaim:
    request = ContainerGrant(name="gpu", shares=(Share(gpu="GPU-n-0", memory_mib=memory_mib, cores=30),))
    return HeldClaim(namespace="team", name="big", uid="c", requests=(request,))


async def test_claims_are_in_the_map_and_their_pods_in_the_list() -> None:
    uses = pod("uses", container(), namespace="team", node="n")
    uses["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimName": "big"}]
    uses["spec"]["containers"][0]["resources"]["claims"] = [{"name": "mine"}]
    other = pod("other", container(), namespace="team", node="n")
    document = await shown(msgspec.structs.replace(inventory(gpus=2), claims=(claim(4096),)), uses, other)
    first, second = document.nodes["n"].gpus
    assert [(part.pod, part.name, part.memory_mib, part.cores) for part in first.parts] == [
        ("", "claim team/big", 4096, 30)
    ]
    assert second.parts == () and document.cluster.idle_gpus == 1
    [(uid, card)] = document.pods.items()
    assert (uid, card.name, card.state) == ("uid-team-uses", "uses", "running")
    assert [(row.container, row.index, row.memory_mib) for row in card.shares] == [("big/gpu", 0, 4096)]


async def test_an_odd_pod_hides_no_other() -> None:
    odd = pod("odd", container(gpu=1, gpumem=1000))
    odd["status"] = {"phase": "Pending", "conditions": [7]}
    document = await shown(inventory(), odd, pod("fine", container(gpu=1, gpumem=99999)))
    assert [card.name for card in document.pods.values()] == ["fine"] and document.cluster.left_out == 1


async def test_stranded_is_what_takes_none_of_the_pods() -> None:
    runs = held("a", Share(gpu="GPU-n-0", memory_mib=12000), gpu=1, gpumem=12000)
    document = await shown(inventory(gpus=2), *runs)
    assert [gpu.stranded for gpu in document.nodes["n"].gpus] == [True, False]
    assert (document.cluster.stranded_gpus, document.cluster.stranded_mib) == (1, T4 - 12000)
    small = pod("small", container(gpu=1, gpumem=1000))
    assert (await shown(inventory(gpus=2), *runs, small)).cluster.stranded_gpus == 0


def test_changes_lead_from_one_document_to_the_next() -> None:
    one, other = NodeCard(name="one"), NodeCard(name="other")
    pods = {uid: PodCard(namespace="default", name=uid, state="running") for uid in "ab"}
    before = ClusterDocument(nodes={"one": one, "other": other}, pods={"a": pods["a"]})
    after = ClusterDocument(
        nodes={"one": NodeCard(name="one", cordoned=True), "other": NodeCard(name="other")}, pods=pods
    )
    assert dict(changes(before, after).nodes) == {"one": {"cordoned": True}}
    assert dict(changes(before, after).pods) == {"b": pods["b"]}
    assert dict(changes(after, ClusterDocument()).nodes) == {"one": None, "other": None}
    again = changes(after, after)
    assert not again.nodes and not again.pods


def test_a_gpu_of_a_mig_node_can_be_asked() -> None:
    """Cards that grants may partition have more state than others, which has to be comparable too."""
    gpu = Gpu(
        uuid="GPU-0", index=0, model="A100-SXM4-40GB", memory_mib=40960, capacity_mib=40960, mig_capable=True,
        mig_card="A100-SXM4-40GB", modes=(Mode.MIG, Mode.QUOTA),
    )  # fmt: skip
    (state,) = NodeState.of("n", [gpu]).gpus
    asked = ContainerRequest(container="", count=1, memory_mib=99999)
    assert StrandedGpus([(asked, GpuSelector())]).holds(state)


async def test_mig_of_a_node_is_what_is_requested_and_what_exists() -> None:
    devices = (
        MigDeviceCount(profile="1g.5gb", count=28, reason=NO_STRATEGY),
        MigDeviceCount(profile="3g.20gb", count=2, resource="nvidia.com/mig-3g.20gb"),
    )
    conditions = {"n": NodeCondition(mig_configuration="all-1g.5gb", mig_state="success")}
    document = await shown(Inventory(node="n", mig_devices=devices), conditions=conditions)
    assert document.nodes["n"].mig == (
        "configuration all-1g.5gb: success",
        "28 1g.5gb, not offered, because the MIG strategy is none; set it to mixed (hami.migStrategy, or mig.strategy "
        "in Lamina's own form)",
        "2 3g.20gb, offered as nvidia.com/mig-3g.20gb",
    )
