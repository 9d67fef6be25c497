"""A pod that is gone counts until its processes are: by what its node's agent publishes, and shortly before that."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from lamina.controller.capacity.inventory_status import InventoryStatuses
from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import NOTHING
from lamina.core.objects import write_spec
from lamina.core.survivors import Survivor
from lamina.ledger.lingering_pods import REPORT_S
from lamina.ledger.pod_rules import PodRules
from lamina.ports.kube import INVENTORIES, NODES, PODS, RESOURCE_QUOTAS, Object
from tests.controller.binders import Bench
from tests.waiting import canceled
from tests.worlds.clocks import settle
from tests.worlds.objects import inventory, inventory_object, node_object

RUNS, ENDED = {"running": {}}, {"terminated": {"exitCode": 0}}


class WatchingBench(Bench):
    """A bench that watches, with one node and a clock that a test moves."""

    async def begin(self) -> None:
        await self.kube.create(NODES, node_object())
        await self.kube.create(INVENTORIES, inventory_object())

    async def running_pod(self, name: str = "p", state: Object = RUNS, **limits: Any) -> Object:
        """A bound pod whose container is in this state."""
        pod = await self.pod(name, **(limits or {"gpu": 1, "gpumem": 1000}))
        assert await self.bind(pod) == ""
        await self.tell(name, state)
        return pod

    async def tell(self, name: str, state: Object, phase: str = "Running") -> None:
        """Kubelet writes the status of a pod."""
        status = {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}
        await self.kube.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
        await self.settle()

    async def delete(self, name: str = "p") -> None:
        await self.kube.delete(PODS, name, namespace="default")
        await self.settle()

    async def publish(self, *survivors: Survivor) -> None:
        """The agent of the node writes its Inventory."""
        spec = write_spec(msgspec.structs.replace(inventory(), survivors=survivors))
        found = await self.kube.get(INVENTORIES, "node-0")
        await self.kube.replace(INVENTORIES, {**found, "spec": spec})
        await self.settle()

    async def later(self, seconds: float) -> None:
        self.clock.time += seconds
        self.ledger.expire(self.clock.monotonic())

    async def settle(self) -> None:
        await settle(50)


def survivor(pod: Object, memory: int = 1000, **share: Any) -> Survivor:
    meta = pod["metadata"]
    held = Share(gpu="GPU-0", memory_mib=memory, **share)
    containers = (ContainerGrant(name="main", shares=(held,)),)
    return Survivor(namespace="default", pod=meta["name"], pod_uid=meta["uid"], containers=containers)


@pytest.fixture
async def cluster() -> AsyncIterator[WatchingBench]:
    made = WatchingBench()
    await made.begin()
    watching = asyncio.create_task(made.watches.run())
    await made.settle()
    yield made
    await canceled(watching)


async def test_a_pod_that_is_deleted_by_force_counts_until_its_agent_had_time_to_see_what_runs(
    cluster: WatchingBench,
) -> None:
    await cluster.running_pod()
    await cluster.delete()
    assert cluster.memory() == 1000
    assert cluster.ledger.totals.taken_in_namespace("default").memory_mib == 1000
    await cluster.later(REPORT_S - 1)
    assert cluster.memory() == 1000
    await cluster.later(1)
    assert cluster.memory() == 0, "agents of versions that publish no survivors do not keep it for ever"
    assert cluster.ledger.totals.taken_in_namespace("default").memory_mib == 0


@pytest.mark.parametrize("state", [ENDED, {"waiting": {"reason": "ContainerCreating"}}, {}])
async def test_a_pod_without_running_containers_counts_no_longer_at_once(cluster: WatchingBench, state: Object) -> None:
    await cluster.running_pod(state=state)
    await cluster.delete()
    assert cluster.memory() == 0


async def test_a_pod_counts_while_its_agent_publishes_it(cluster: WatchingBench) -> None:
    pod = await cluster.running_pod()
    await cluster.delete()
    await cluster.publish(survivor(pod))
    await cluster.later(100 * REPORT_S)
    assert cluster.memory() == 1000
    other = await cluster.pod("q", gpu=2, gpumem=32000)
    refusal = cluster.scheduler.filter(cluster.parse(other), ["node-0"]).failed["node-0"]
    assert refusal.endswith("needs 32000 MiB; the best of them has 31768 MiB free")
    await cluster.publish()
    assert cluster.memory() == 0, "its processes are gone"


async def test_an_agent_may_publish_a_pod_before_its_deletion_is_observed(cluster: WatchingBench) -> None:
    pod = await cluster.running_pod()
    await cluster.publish(survivor(pod))
    assert cluster.memory() == 1000, "once"
    await cluster.delete()
    assert cluster.memory() == 1000
    await cluster.publish()
    assert cluster.memory() == 0, "at once, because the agent knows of the deletion"


async def test_a_pod_that_failed_by_what_others_say_counts_while_its_processes_run(cluster: WatchingBench) -> None:
    """Kubernetes marks pods of a node that does not answer as failed, and deletes them."""
    pod = await cluster.running_pod()
    await cluster.tell("p", RUNS, "Failed")
    assert cluster.memory() == 1000
    await cluster.publish(survivor(pod))
    await cluster.delete()
    await cluster.later(REPORT_S)
    assert cluster.memory() == 1000
    await cluster.publish()
    assert cluster.memory() == 0


async def test_a_controller_that_starts_later_counts_the_same(cluster: WatchingBench) -> None:
    pod = await cluster.running_pod(gpu=1, gpumem=1000, gpucores=30)
    await cluster.delete()
    await cluster.publish(survivor(pod, cores=30), survivor(pod, cores=30))
    unknown = WatchingBench(cluster.kube)
    observing = asyncio.create_task(unknown.watches.run())
    await unknown.settle()
    assert unknown.memory() == 1000, "an agent speaks for its own GPUs"
    assert unknown.ledger.totals.taken_in_namespace("default") == NOTHING, "and not for namespaces"
    observing.cancel()
    statuses = cluster.watches.inventory_statuses
    await InventoryStatuses(cluster.kube, cluster.cluster_state, statuses, cluster.clock, lambda: ()).step()
    later = WatchingBench(cluster.kube)
    watching = asyncio.create_task(later.watches.run())
    await later.settle()
    taken = later.ledger.totals.taken("node-0")["GPU-0"]
    assert (taken.slots, taken.memory_mib, taken.cores) == (1, 1000, 30)
    assert later.ledger.totals.taken_in_namespace("default").memory_mib == 1000
    await cluster.kube.delete(INVENTORIES, "node-0")
    await later.settle()
    assert later.ledger.totals.taken_in_namespace("default") == NOTHING, "the node is gone with all that ran there"
    await canceled(watching)


async def test_a_pod_counts_for_no_more_than_it_held_and_in_its_own_namespace(cluster: WatchingBench) -> None:
    pod = await cluster.running_pod()
    await cluster.delete()
    lie = msgspec.structs.replace(survivor(pod, memory=1 << 30, cores=100), namespace="other")
    await cluster.publish(lie)
    await cluster.later(REPORT_S)
    assert cluster.memory() == 1000
    assert cluster.ledger.totals.taken_in_namespace("default").memory_mib == 1000
    assert cluster.ledger.totals.taken_in_namespace("other") == NOTHING
    assert cluster.ledger.confirmed_survivors("node-0") == ()


async def test_an_agent_that_names_a_pod_before_it_is_known_changes_nothing_for_it(cluster: WatchingBench) -> None:
    """The agents of all nodes see the UID of a pod as soon as the controller does, and may be quicker."""
    pod = await cluster.pod("early", gpu=1, gpumem=2000)
    await cluster.publish(msgspec.structs.replace(survivor(pod, memory=30000), namespace="other"))
    assert await cluster.bind(pod) == ""
    await cluster.settle()
    assert cluster.memory() == 2000
    assert cluster.ledger.totals.taken_in_namespace("default").memory_mib == 2000
    assert cluster.ledger.totals.taken_in_namespace("other") == NOTHING


async def test_a_quota_cannot_be_passed_by_deleting_pods_by_force(cluster: WatchingBench) -> None:
    quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpumem": 1500}}}
    cluster.quotas.observe(await cluster.kube.create(RESOURCE_QUOTAS, quota))
    pod = await cluster.running_pod()
    await cluster.delete()
    await cluster.publish(survivor(pod))
    await cluster.later(REPORT_S)
    reason = PodRules(cluster.ledger, cluster.quotas).refused_everywhere(
        cluster.parse(await cluster.pod("next", gpu=1, gpumem=1000))
    )
    assert "quota q allows 1500 of nvidia.com/gpumem; 1000 are used" in reason


async def test_a_pod_with_ephemeral_containers_that_run_counts(cluster: WatchingBench) -> None:
    await cluster.running_pod(state=ENDED)
    status = {"ephemeralContainerStatuses": [{"name": "debug", "state": RUNS}]}
    await cluster.kube.patch(PODS, "p", {"status": status}, namespace="default", subresource="status")
    await cluster.settle()
    await cluster.delete()
    assert cluster.memory() == 1000
