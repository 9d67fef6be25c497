"""Commands know what pods hold by ResourceClaims, as the agents publish it."""

import json
from typing import Any

import pytest
from msgspec import structs

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.defragmentation.plan import plan
from lamina.ports.kube import RESOURCE_QUOTAS, Object
from lamina.report import cluster_reader
from lamina.report.claim_shares import shares_by_claims
from lamina.report.cluster_use import ClusterUse
from lamina.report.shares import all_shares
from tests.cli.commands import Commands
from tests.operations.agent_pages import claim_lines, serve, share_lines
from tests.report.held_claims import claim, holding
from tests.report.lines import why
from tests.worlds.clusters import T4, cluster, container, grant, inventory, pod


def using(name: str, *uses: Object, node: str = "n", phase: str = "Running", **more: Any) -> Object:
    """A pod with a container for each use of the claim `c`."""
    containers = [{"name": f"c{at}", "resources": {"claims": [use]}} for at, use in enumerate(uses)]
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    return pod(name, *containers, node=node, resourceClaims=claims, status={"phase": phase}, **more)


GPU: Object = {"name": "gpu"}


def test_a_pod_holds_the_requests_that_its_containers_name_once() -> None:
    known = {"n": holding(claim("c", ("a", 1000), ("b", 2000)))}
    for uses, memory in (([GPU], [1000, 2000]), ([GPU | {"request": "b"}], [2000]), ([GPU, GPU], [1000, 2000])):
        assert [share.memory_mib for share in shares_by_claims(using("p", *uses), known)] == memory


@pytest.mark.parametrize(
    "other",
    [
        using("p", GPU, phase="Succeeded"),
        using("p", GPU, node=""),
        using("p", GPU, node="m"),
        using("p", GPU, namespace="other"),
        using("p", GPU | {"request": "absent"}),
        pod("p", container(), node="n"),
    ],
)
def test_other_pods_hold_nothing(other: Object) -> None:
    assert shares_by_claims(other, {"n": holding(claim("c", ("a", 1000))), "m": inventory("m")}) == []


def test_claims_by_templates_and_by_extended_resources_are_known_by_the_status_of_the_pod() -> None:
    known = {"n": holding(claim("p-gpu-x", ("a", 1000)))}
    templated = using("p", GPU)
    templated["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    templated["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    extended = pod("p", container(gpu=1), node="n")
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "a"}
    extended["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "p-gpu-x",
        "requestMappings": [mapping],
    }
    assert [len(shares_by_claims(each, known)) for each in (templated, extended)] == [1, 1]


async def test_lamina_pods_lists_what_is_held_by_claims_and_by_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    node = holding(claim("c", ("a", 4096), cores=30), gpus=2)
    both = using("both", GPU)
    kube = await cluster(node, using("claims", GPU), both, grant(both, "n", 1000, "GPU-n-1"))
    serve(kube, "n", share_lines("n", "both", "GPU-n-1", data=7, peak=9) + claim_lines("n", "c/a", "GPU-n-0", data=50))
    rows = [line.split() for line in (await Commands(monkeypatch, kube).run("pods")).output.splitlines()[1:]]
    assert rows == [
        ["both", "Running", "n", "1", "1000", "MiB", "7", "MiB", "9", "MiB", "shared", "main"],
        ["0", "4096", "MiB", "50", "MiB", "0", "MiB", "30", "%,", "no", "limit", "c/a"],
        ["claims", "Running", "n", "0", "4096", "MiB", "50", "MiB", "0", "MiB", "30", "%,", "no", "limit", "c/a"],
    ]


async def test_lamina_top_has_the_shares_of_claims() -> None:
    view = await cluster_reader.read(await cluster(holding(claim("c", ("a", 4096), cores=30)), using("one", GPU)))
    [row] = all_shares(view, ClusterUse())
    share = row.share
    assert (row.pod, share.container, share.index) == ("one", "c/a", 0)
    assert (share.limit_mib, share.compute_percent) == (4096, 30)


async def test_lamina_gpus_counts_what_claims_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    node = holding(claim("c", ("a", 4096), cores=30), claim("d", ("a", 1000)), gpus=2)
    kube = await cluster(node, using("one", GPU), using("two", GPU))
    first, second = json.loads((await Commands(monkeypatch, kube).run("gpus", "-o", "json")).output)
    assert (first["mode"], first["pods"], first["slotsGranted"]) == ("claims", ["default/one", "default/two"], None)
    assert (first["memoryGrantedMib"], first["memoryFreeMib"]) == (5096, T4 - 5096)
    assert (first["computeGrantedPercent"], first["computeFreePercent"]) == (30, 70)
    assert (second["mode"], second["memoryGrantedMib"], second["pods"]) == ("idle", 0, [])


async def test_lamina_gpus_does_not_say_what_is_free_of_a_gpu_with_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    share = Share(gpu="GPU-n-0", memory_mib=4864, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=0))
    by_mig = HeldClaim(namespace="default", name="c", uid="u", requests=(ContainerGrant(name="a", shares=(share,)),))
    node = inventory("n")
    partitioned = structs.replace(node.gpus[0], mode=Mode.TIMESLICE)
    kube = await cluster(structs.replace(node, gpus=(partitioned,), claims=(by_mig,)), using("p", GPU))
    (row,) = json.loads((await Commands(monkeypatch, kube).run("gpus", "-o", "json")).output)
    assert (row["mode"], row["memoryGrantedMib"], row["memoryFreeMib"], row["pods"]) == (
        "claims", 4864, None, ["default/p"],
    )  # fmt: skip


async def test_lamina_why_names_the_claims_that_have_the_gpus() -> None:
    waits = pod("waits", container(gpu=1, gpumem=1000))
    view = await cluster_reader.read(await cluster(holding(claim("c", ("a", 4096))), waits))
    assert list(why(view, "default", "waits"))[-1] == (
        "  ResourceClaim default/c holds 4096 MiB of GPU 0 of node n, which takes no shares meanwhile"
    )
    many = holding(*(claim(f"c{at}", ("a", 10)) for at in range(7)))
    lines = list(why(await cluster_reader.read(await cluster(many, waits)), "default", "waits"))
    assert lines[-1] == "  2 more ResourceClaims hold GPUs" and len(lines) == 7


async def test_lamina_reset_refuses_while_pods_use_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(holding(claim("c", ("a", 4096))), using("busy", GPU), using("over", GPU, phase="Failed"))
    ended = await Commands(monkeypatch, kube).run("reset", "--yes")
    assert ended.code == 2 and ended.error.startswith("1 pod uses GPUs: default/busy; delete them")


@pytest.mark.parametrize(("hard", "over"), [("5096", False), ("5095", True)])
async def test_a_quota_counts_claims_and_pods_together(hard: str, over: bool) -> None:
    node = holding(claim("c", ("a", 4096)), claim("d", ("a", 9000), namespace="other"), claim("e", ("a", 1)), gpus=2)
    kube = await cluster(node, using("holder", GPU))  # no pod uses the claim e
    spec = {"hard": {"limits.nvidia.com/gpumem": hard}}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "team", "namespace": "default"}, "spec": spec})
    view = await cluster_reader.read(kube)
    reason = view.rules.refused_everywhere(view.parse(pod("p", container(gpu=1, gpumem=1000))))
    assert bool(reason) is over and ("4096 are used" in reason) is over


async def test_lamina_advise_defrag_moves_nothing_to_a_gpu_that_claims_have() -> None:
    owned = {"ownerReferences": [{"controller": True}]}
    small, smaller = (pod(name, container(gpu=1, gpumem=1000), node="n") for name in ("small", "smaller"))
    for each in (small, smaller):
        each["metadata"] |= owned
    grants = (grant(small, "n", 1000, "GPU-n-0"), grant(smaller, "n", 1000, "GPU-n-1"))

    async def steps(node: Inventory) -> list[str]:
        view = await cluster_reader.read(await cluster(node, small, smaller, *grants))
        return [gpu for step in plan(view, 5) for move in step.moves for gpu in move.to_gpus]

    assert await steps(inventory("n", 2))
    assert "GPU-n-2" not in await steps(holding(claim("c", ("a", 1), gpu=2), gpus=3))
    only = structs.replace(holding(claim("c", ("a", 1), gpu=1), gpus=2))
    view = await cluster_reader.read(await cluster(only, small, grants[0]))
    assert list(plan(view, 5)) == []
