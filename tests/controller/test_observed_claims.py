"""GPUs that kube-scheduler has allocated to claims take no grants, and a pod's own claims are no exception."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from lamina.core.gpus import Mode
from lamina.dra.names import DRIVER, HAMI_DRIVER
from lamina.ledger.observed_claims import ObservedClaims
from lamina.ports.kube import PODS, RESOURCE_CLAIMS, Object
from tests.controller.binders import Bench
from tests.waiting import canceled, until
from tests.worlds.objects import admitted_pod, gpus, inventory

NODE = "node-0"


def result(device: str = "gpu-0", pool: str = NODE, driver: str = DRIVER, **more: Any) -> Object:
    return {"request": "one", "device": device, "pool": pool, "driver": driver, **more}


def claim(*results: Object, name: str = "c", classes: Sequence[str] = (DRIVER,)) -> Object:
    requests = [{"name": each, "exactly": {"deviceClassName": each}} for each in classes]
    allocation = {"devices": {"results": list(results)}} if results else None
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": allocation},
    }


def marked(*claims: Object, driver: str = DRIVER) -> list[int]:
    """The indices of the GPUs that take no grants."""
    observed = ObservedClaims(driver)
    for each in claims:
        observed.observe(each)
    return [gpu.index for gpu in observed.marked(inventory(NODE, *gpus(3))).gpus if gpu.mode is Mode.TIMESLICE]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], []),
        ([result()], [0]),
        ([result("gpu-2"), result("gpu-0")], [0, 2]),
        ([result("gpu-1-mig-1g5gb-19-0")], [1]),
        ([result("gpu-1-mig-1g5gb-me-20-1")], [1]),
        ([result(pool="node-1")], []),
        ([result(driver="nic.example.com")], []),
        ([result("nic-0")], []),
        ([result(adminAccess=True)], []),
        ([result("gpu-7")], []),
        ([result("gpu-99999999999999999999")], []),
    ],
)
def test_the_gpus_of_an_allocation_take_no_grants(results: list[Object], expected: list[int]) -> None:
    assert marked(claim(*results)) == expected


def test_claims_name_gpus_by_the_number_of_their_device_file() -> None:
    observed = ObservedClaims()
    observed.observe(claim(result("gpu-4")))
    numbered = [structs.replace(gpu, minor=gpu.index + 4) for gpu in gpus(2)]
    found = observed.marked(inventory(NODE, *numbered)).gpus
    assert [gpu.mode for gpu in found] == [Mode.TIMESLICE, None]


def test_a_released_claim_frees_its_gpu_and_waiting_pods_are_tried_again() -> None:
    observed, changed = ObservedClaims(), list[str]()
    observed.changed = changed.append
    observed.observe(claim(result()))
    observed.observe(claim(result()))
    assert (changed, observed.deallocations) == ([NODE], 0)
    observed.observe(claim())
    assert (changed, observed.deallocations) == ([NODE] * 2, 1)
    observed.observe(claim(result("gpu-1")))
    observed.remove(claim())
    assert (changed, observed.deallocations) == ([NODE] * 4, 2)
    assert observed.marked(inventory(NODE)) == inventory(NODE)


class Claimed(Bench):
    """A node of two GPUs, and pods with claims."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster_state.claims.followed = True
        self.watches._inventories[NODE] = inventory(NODE, *gpus(2)), ()
        self.watches._update_inventory(NODE)

    async def pod_with_claim(self, name: str = "both", *, uses: str = "", **limits: Any) -> Object:
        """Its container `uses`, or another one of that name, uses the claim c."""
        made = admitted_pod(name, **limits)
        users = {each["name"]: each for each in made["spec"]["containers"]}
        user = users.get(uses) or {"name": "claimed", "resources": {}}
        user["resources"] = {**user["resources"], "claims": [{"name": "entry"}]}
        if user["name"] not in users:
            made["spec"]["containers"].append(user)
        made["spec"]["resourceClaims"] = [{"name": "entry", "resourceClaimName": "c"}]
        return await self.kube.create(PODS, made)

    async def granted_gpus(self) -> list[str]:
        grants = await self.grants()
        return [share["gpu"] for grant in grants for each in grant["spec"]["containers"] for share in each["shares"]]


LIMITS: list[dict[str, Any]] = [{"gpu": 1, "gpumem": 3000}, {"gpu": 1}]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("at", [0, 1])
async def test_a_grant_is_on_another_gpu_than_the_claim_of_the_same_pod(limits: dict[str, Any], at: int) -> None:
    bench = Claimed()
    await bench.kube.create(RESOURCE_CLAIMS, claim(result(f"gpu-{at}")))  # which no watch has reported
    assert await bench.bind(await bench.pod_with_claim(**limits)) == ""
    assert await bench.granted_gpus() == [gpus(2)[1 - at].uuid]


async def test_a_pod_whose_claims_have_all_gpus_is_not_bound() -> None:
    bench = Claimed()
    await bench.kube.create(RESOURCE_CLAIMS, claim(result("gpu-0"), result("gpu-1")))
    pod = await bench.pod_with_claim(gpu=1)
    assert await bench.bind(pod) != ""
    assert (await bench.grants(), await bench.node_of(pod)) == ([], "")


@pytest.mark.parametrize("name", [DRIVER, "mig.nvidia.com", HAMI_DRIVER, "nic.example.com"])
async def test_one_container_cannot_have_gpus_by_both_doors(name: str) -> None:
    bench = Claimed()
    bench.cluster_state.claims.observe(claim(classes=[name]))
    pod = bench.parse(await bench.pod_with_claim(uses="main", gpu=1))
    refusal = bench.scheduler.rules.refused_everywhere(pod)
    assert ('container "main" uses a ResourceClaim for GPUs' in refusal) == (name != "nic.example.com")
    other = bench.parse(await bench.pod_with_claim("other", gpu=1))
    assert bench.scheduler.rules.refused_everywhere(other) == ""


async def test_a_class_of_an_administrator_is_found_by_what_it_was_given() -> None:
    bench = Claimed()
    await bench.kube.create(RESOURCE_CLAIMS, claim(result(), classes=["team-gpu"]))
    assert 'container "main" uses a ResourceClaim for GPUs' in await bench.bind(
        await bench.pod_with_claim(uses="main", gpu=1)
    )


async def test_the_watch_of_claims_decides_what_others_get() -> None:
    bench = Claimed()
    task = asyncio.create_task(bench.watches.run_claims())
    await bench.kube.create(RESOURCE_CLAIMS, claim(result("gpu-0")))
    await bench.kube.create(RESOURCE_CLAIMS, {**claim(name="odd"), "spec": {"devices": {"requests": [7]}}})
    await until(lambda: marked(claim(result("gpu-0"))) == [0] and len(list(bench.cluster_state.claims)) == 1, task=task)
    assert await bench.bind(await bench.pod(gpu=1, gpumem=1000)) == ""
    assert await bench.granted_gpus() == [gpus(2)[1].uuid]
    await canceled(task)


@pytest.mark.parametrize(("most", "binds"), [(32768, True), (32767, False)])
async def test_a_claim_that_kube_scheduler_made_is_bound_within_the_quota(most: int, binds: bool) -> None:
    bench = Claimed()
    hard = {"limits.nvidia.com/gpumem": str(most)}
    bench.quotas.observe({"metadata": {"namespace": "default", "name": "q"}, "spec": {"hard": hard}})
    await bench.kube.create(RESOURCE_CLAIMS, claim(result("gpu-0")))
    mappings = [{"containerName": "main", "requestName": "one", "resourceName": "nvidia.com/gpu"}]
    pod = admitted_pod("extended", gpu=1)
    pod["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": mappings}}
    made = await bench.kube.create(PODS, pod)
    error = await bench.bind(made)
    assert (error == "", await bench.node_of(made) != "") == (binds, binds), error
    assert binds or "quota q allows 32767 of nvidia.com/gpumem" in error
