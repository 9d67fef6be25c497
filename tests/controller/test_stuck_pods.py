"""Pods that wait on their node for a GPU that they cannot get are evicted after a minute, and no others."""

from typing import Any

import pytest
from msgspec import structs

from lamina.controller.eviction.evictor import Evictor
from lamina.controller.eviction.stuck_pods import STUCK_S, StuckPods
from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory
from lamina.core.grants import ContainerGrant, Share
from lamina.dra.names import DRIVER
from lamina.ports.kube import DISRUPTION_BUDGETS, EVENTS, PODS, EventRecorder, Object
from tests.controller.binders import Bench
from tests.worlds.objects import admitted_pod, gpus, inventory

NODE = "node-0"
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
WAITING = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": {}}}]}


class Stuck(Bench):
    """A node of two GPUs; pods are bound to it."""

    def __init__(self) -> None:
        super().__init__()
        events = EventRecorder(self.kube, "test", now=self.clock.wall)
        evictor = Evictor(self.kube, events, lambda: self.leads)
        self.stuck = StuckPods(self.context, evictor, self.context.claim_usage)
        self.report(inventory(NODE, *gpus(2)))

    async def claimed(
        self, *, device: str = "gpu-0", node: str = NODE, status: Any = WAITING, pool: str = NODE
    ) -> None:
        """A pod with a claim of a GPU."""
        spec = {"nodeName": node, "containers": [{"name": "main"}]}
        made = await self.kube.create(
            PODS, {"metadata": {"name": "claimed", "namespace": "default"}, "spec": spec, "status": status}
        )
        self.watches._handle(PODS, "ADDED", self.watches._trim_pod(made))
        result = {"request": "one", "driver": DRIVER, "pool": pool, "device": device}
        self.cluster_state.claims.observe(
            {
                "metadata": {"name": "c", "namespace": "default", "uid": "uid-of-c"},
                "spec": {},
                "status": {
                    "allocation": {"devices": {"results": [result]}},
                    "reservedFor": [{"resource": "pods", "name": "claimed", "uid": made["metadata"]["uid"]}],
                },
            }
        )

    async def granted(self, *, status: Any = WAITING) -> Object:
        """A pod with a grant of GPU 0."""
        pod = await self.kube.create(PODS, admitted_pod("granted", gpu=1, gpumem=1000))
        assert await self.bind(pod) == ""
        bound = {**await self.kube.get(PODS, "granted", namespace="default"), "status": status}
        await self.kube.replace(PODS, bound)
        for grant in await self.grants():
            self.watches._handle_grant("ADDED", grant)
        self.watches._handle(PODS, "MODIFIED", self.watches._trim_pod(bound))
        return bound

    def prepared(self) -> None:
        share = Share(gpu="GPU-0", memory_mib=1000)
        held = HeldClaim(
            namespace="default", name="c", uid="uid-of-c", requests=(ContainerGrant(name="one", shares=(share,)),)
        )
        self.report(structs.replace(inventory(NODE, *gpus(2)), claims=(held,)))

    def report(self, found: Inventory) -> None:
        self.watches._inventories[NODE] = found, ()
        self.watches._update_inventory(NODE)

    def quota(self, memory: int) -> None:
        hard = {"limits.nvidia.com/gpumem": str(memory)}
        self.quotas.observe({"metadata": {"namespace": "default", "name": "q"}, "spec": {"hard": hard}})

    async def evicted(self) -> set[str]:
        """After a minute."""
        names = await self.names()
        await self.stuck.reconcile()
        await self.clock.advance(STUCK_S - 1)
        await self.stuck.reconcile()
        assert await self.names() == names
        await self.clock.advance(1)
        await self.stuck.reconcile()
        return names - await self.names()

    async def names(self) -> set[str]:
        return {each["metadata"]["name"] for each in (await self.kube.list(PODS)).items}


@pytest.mark.parametrize(("most", "expected"), [(32768, set()), (32767, {"claimed"}), (0, {"claimed"})])
async def test_a_pod_whose_claim_exceeds_a_quota_is_ended(most: int, expected: set[str]) -> None:
    stuck = Stuck()
    stuck.quota(most)
    await stuck.claimed()
    assert await stuck.evicted() == expected
    said = [each["message"] for each in (await stuck.kube.list(EVENTS)).items]
    assert all(f"quota q allows {most} of nvidia.com/gpumem" in each for each in said) and len(said) == len(expected)


@pytest.mark.parametrize("status", [WAITING, RUNNING])
async def test_a_pod_whose_claim_has_the_gpu_of_a_grant_is_ended(status: Any) -> None:
    stuck = Stuck()
    await stuck.granted(status=status)
    await stuck.claimed()
    assert await stuck.evicted() == {"claimed"}


@pytest.mark.parametrize(("status", "expected"), [(WAITING, {"granted"}), (RUNNING, set())])
async def test_a_pod_whose_grant_is_of_a_claimed_gpu_is_ended(status: Any, expected: set[str]) -> None:
    stuck = Stuck()
    await stuck.granted(status=status)
    await stuck.claimed()
    stuck.prepared()
    assert await stuck.evicted() == expected


@pytest.mark.parametrize(
    "claimed",
    [
        {"device": "gpu-1"},
        {"status": RUNNING},
        {"node": "node-1"},
        {"pool": "node-1"},
        {"device": "nic-0"},
    ],
)
async def test_other_pods_stay(claimed: dict[str, Any]) -> None:
    stuck = Stuck()
    await stuck.granted(status=RUNNING)
    await stuck.claimed(**claimed)
    assert await stuck.evicted() == set()


async def test_time_counts_from_when_the_pod_was_stuck_and_only_for_the_leader() -> None:
    stuck = Stuck()
    await stuck.claimed()
    stuck.quota(0)
    await stuck.stuck.reconcile()
    await stuck.clock.advance(STUCK_S - 1)
    stuck.quota(40000)
    await stuck.stuck.reconcile()
    stuck.quota(0)
    assert await stuck.evicted() == {"claimed"}, "it was not stuck in between"
    other = Stuck()
    await other.claimed()
    other.quota(0)
    other.leads = False
    assert await other.evicted() == set()


async def test_a_pod_that_a_budget_holds_is_tried_again() -> None:
    stuck = Stuck()
    await stuck.claimed()
    stuck.quota(0)
    meta = {"name": "b", "namespace": "default"}
    budget = {"metadata": meta, "spec": {"selector": {}}, "status": {"disruptionsAllowed": 0}}
    await stuck.kube.create(DISRUPTION_BUDGETS, budget)
    assert await stuck.evicted() == set()
    await stuck.kube.delete(DISRUPTION_BUDGETS, "b", namespace="default")
    await stuck.stuck.reconcile()
    assert await stuck.names() == set()
