"""MIG devices that a claim gets on demand: made at Prepare, destroyed after Unprepare, and one mode per GPU."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.resource_claims.dra_devices import REFUSED_S
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpus import Mode
from lamina.core.mig import Placed
from lamina.dra.names import DRIVER
from lamina.dra.offers import REFUSED
from lamina.errors import BadInput, NotYet, Outside
from lamina.ports.kube import RESOURCE_SLICES, Object, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.resources import Resource
from lamina.ports.nvml import GpuProcess
from tests.agent.claim_nodes import ClaimNode, dies, result, sharing
from tests.agent.mig_nodes import FACTS, GPU, admitted, instance, on
from tests.waiting import canceled, until

SMALL, LARGE = "gpu-0-mig-1g5gb-19-6", "gpu-0-mig-3g20gb-9-4"


class PartitionedNode(ClaimNode):
    """Two A100 that may be used by shares and MIG instances."""

    modes = (Mode.QUOTA, Mode.MIG)

    def __init__(self, root: Path) -> None:
        super().__init__(root, facts=FACTS)

    def list_gpus(self) -> None:
        """The agent looks at its GPUs."""
        self.gpus = {
            each.uuid: ObservedGpu(structs.replace(each, instances=self.nvml.instances.get(each.uuid, ())))
            for each in self.nvml.present
        }
        self.offers.update(on_demand=self.instances)
        self.observe()

    async def starts_again(self) -> None:
        await super().starts_again()
        await self.reconcile()

    async def reconcile(self) -> None:
        self.list_gpus()
        await self.on_demand.reconcile()
        self.list_gpus()

    def there(self) -> list[tuple[str, int]]:
        return [(each.profile, each.start) for each in self.nvml.instances.get(GPU, ())]


@pytest.fixture
def node(tmp_path: Path) -> PartitionedNode:
    return PartitionedNode(tmp_path)


def mig(request: str = "mig", device: str = SMALL, **more: Any) -> Object:
    return result(request, device, **more)


async def test_the_instance_exists_from_prepare_until_the_claim_has_ended(node: PartitionedNode) -> None:
    await node.prepared("c", mig())
    assert (node.there(), on(node)) == ([("1g.5gb", 6)], True)
    (made,) = node.nvml.instances[GPU]
    assert node.visible("c", "mig") == made.uuid != ""
    await node.reconcile()
    assert node.there() == [("1g.5gb", 6)]
    await node.unprepare("c")
    await node.reconcile()
    assert (node.there(), node.left(), node.made.instances) == ([], [], frozenset())


async def test_claims_have_different_instances_of_a_gpu(node: PartitionedNode) -> None:
    await node.prepared("a", mig(), mig("other", "gpu-0-mig-1g5gb-19-5"))
    await node.prepared("b", mig(device="gpu-0-mig-4g20gb-5-0"))
    assert sorted(node.there()) == [("1g.5gb", 5), ("1g.5gb", 6), ("4g.20gb", 0)]
    assert len({node.visible("a", "mig"), node.visible("a", "other"), node.visible("b", "mig")}) == 3


@pytest.mark.parametrize("device", [LARGE, SMALL, "gpu-0"])
async def test_an_overlapping_claim_waits_for_the_other_one(node: PartitionedNode, device: str) -> None:
    await node.prepared("a", mig())
    await node.claim("b", mig(device=device))
    with pytest.raises(NotYet, match="has no room for the claim as long as it is prepared for default/a"):
        await node.prepare("b")
    await node.unprepare("a")
    await node.prepare("b")
    assert node.there() == [] if device == "gpu-0" else node.there() != []
    assert on(node) == (device != "gpu-0")


async def test_a_share_and_a_mig_device_follow_each_other(node: PartitionedNode) -> None:
    await node.prepared("share", result(memory="4Gi"))
    assert not on(node)
    await node.claim("mig", mig())
    with pytest.raises(NotYet, match="has no room"):
        await node.prepare("mig")
    await node.unprepare("share")
    await node.prepare("mig")
    await node.unprepare("mig")
    await node.prepared("again", result(memory="8Gi"))
    assert (on(node), node.limits_of("again")) == (False, "gpu:0:8192")


async def test_a_process_that_still_runs_keeps_the_instance(node: PartitionedNode) -> None:
    await node.prepared("a", mig())
    (made,) = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1 << 20),)
    await node.unprepare("a")
    await node.reconcile()
    assert node.there() == [("1g.5gb", 6)]
    await node.claim("b", mig())
    with pytest.raises(NotYet, match="is in use by process 7"):
        await node.prepare("b")
    node.nvml.running.clear()
    await node.prepare("b")
    assert node.visible("b", "mig") == made.uuid


async def test_another_pod_of_the_claim_may_start_while_the_first_one_runs(node: PartitionedNode) -> None:
    await node.prepared("c", mig())
    (made,) = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1 << 20),)
    await node.prepare("c")
    assert node.visible("c", "mig") == made.uuid


async def test_after_a_restart_of_the_machine_the_instance_is_made_again(node: PartitionedNode) -> None:
    await node.prepared("c", mig())
    before = node.visible("c", "mig")
    node.nvml.instances.clear()
    for path in (node.root / "cdi").iterdir():
        path.unlink()
    await node.nvml.create_mig(GPU, Placed("1g.5gb", 5))  # takes the UUID that the claim's device had
    node.start()
    node.list_gpus()
    await node.prepare("c")
    assert ("1g.5gb", 6) in node.there() and node.visible("c", "mig") != before


async def test_the_two_doors_exclude_each_other(node: PartitionedNode) -> None:
    await admitted(node, "pod", instance())
    await node.preparer.prepare(["ticket-pod-0"])
    await node.claim("c", mig(device="gpu-0-mig-1g5gb-19-5"))
    with pytest.raises(NotYet, match="is in use by pod default/pod through the device plugin"):
        await node.prepare("c")
    await node.prepared("other", mig(device="gpu-1-mig-1g5gb-19-6"))
    await admitted(node, "late", instance(gpu=FACTS[1].uuid, start=5))
    with pytest.raises(NotYet, match="is in use by the ResourceClaim default/other"):
        await node.preparer.prepare(["ticket-late-0"])


async def test_mps_serves_a_mig_device_that_was_made_for_its_claim(node: PartitionedNode) -> None:
    config = [sharing("MPS", kind="MigDeviceConfig", defaultActiveThreadPercentage=50)]
    await node.claim("c", mig(), config=config)
    await node.prepare("c")
    (made,) = node.nvml.instances[GPU]
    assert node.mps.started == [made.uuid] and node.visible("c", "mig") == made.uuid
    node.mps.daemons.clear()
    await node.daemons.reconcile()
    assert node.mps.started == [made.uuid, made.uuid], "a daemon that ended is started again"
    await node.unprepare("c")
    await node.reconcile()
    assert (node.mps.daemons, node.there(), node.left()) == ({}, [], [])


async def test_admin_access_needs_a_device_that_exists(node: PartitionedNode) -> None:
    await node.claim("c", mig(adminAccess=True))
    with pytest.raises(BadInput, match="exists only while a claim has it, so it cannot have adminAccess"):
        await node.prepare("c")


async def test_limits_above_a_request_are_for_shares_of_a_gpu(node: PartitionedNode) -> None:
    await node.prepared("kept", mig(device="gpu-0-mig-1g5gb-19-0"))
    await node.nvml.create_mig(GPU, Placed("1g.5gb", 1))
    node.list_gpus()
    parameters = {"apiVersion": "lamina.dev/v1alpha1", "kind": "ShareConfig", "limits": {"memory": "8Gi"}}
    config = [{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}]
    await node.claim("c", mig(), config=config)
    with pytest.raises(BadInput, match="ShareConfig is for shares of a GPU; request memory, or remove the limits"):
        await node.prepare("c")


async def test_a_driver_that_refuses_leaves_the_claim_waiting(node: PartitionedNode) -> None:
    await node.claim("c", mig())
    node.nvml.broken = "Insufficient Resources"
    with pytest.raises(Outside, match="Insufficient Resources"):
        await node.prepare("c")
    node.nvml.broken = ""
    await node.prepare("c")
    assert node.there() == [("1g.5gb", 6)]


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("then", ["prepared again", "unprepared"])
async def test_the_agent_may_die_at_any_step(tmp_path: Path, torn: bool, then: str) -> None:
    for at in itertools.count():
        node = PartitionedNode(tmp_path / str(at))
        await node.claim("c", mig(), mig("large", "gpu-0-mig-4g20gb-5-0"))
        died = await dies(node, at, torn=torn, preparing=True)
        if then == "unprepared":
            await node.unprepare("c")
            await node.reconcile()
            assert (node.there(), node.left(), node.context.record.claims) == ([], [], {}), at
        else:
            await node.prepare("c")
            assert sorted(node.there()) == [("1g.5gb", 6), ("4g.20gb", 0)], at
            assert {node.visible("c", "mig"), node.visible("c", "large")} == {
                each.uuid for each in node.nvml.instances[GPU]
            }
        if not died:
            assert at > 8
            return


async def test_a_gpu_that_refuses_has_a_taint_for_a_while(node: PartitionedNode) -> None:
    await node.claim("c", mig())
    node.nvml.running[GPU] = (GpuProcess(7, 1 << 20),)
    with pytest.raises(NotYet, match="cannot change the MIG mode of GPU 0 while it is in use by process 7"):
        await node.prepare("c")
    tainted = {device.gpu for device in node.offer.free if "taints" in device.document}
    assert tainted == {GPU}
    assert {each["key"] for device in node.offer.free for each in device.document.get("taints", ())} == {REFUSED}
    await node.clock.advance(REFUSED_S)
    assert not any("taints" in device.document for device in node.offer.free)


class OldKube(FakeKube):
    """An API server without counters: it drops the fields, or refuses devices that take counters of other slices."""

    refuses = False

    async def create(self, resource: Resource, content: Object, **more: Any) -> Object:
        return await super().create(resource, self._without(resource, content), **more)

    async def replace(self, resource: Resource, content: Object, **more: Any) -> Object:
        return await super().replace(resource, self._without(resource, content), **more)

    def _without(self, resource: Resource, content: Object) -> Object:
        if resource != RESOURCE_SLICES:
            return content
        spec = {**content["spec"]}
        if self.refuses and any("consumesCounters" in each for each in spec.get("devices", ())):
            raise Refused("spec.devices[0].consumesCounters[0].counterSet: Invalid value")
        if not self.refuses:
            spec.pop("sharedCounters", None)
        return {**content, "spec": spec}


async def published(node: PartitionedNode, looks: int = 2) -> list[Object]:
    await node.joined()
    task = asyncio.create_task(node.watch.run())
    await until(lambda: node.watch.published is not None, task=task)
    for _ in range(looks):
        await node.publisher.reconcile()
    await canceled(task)
    return (await node.kube.list(RESOURCE_SLICES)).items


def names(slices: list[Object]) -> list[str]:
    return [each["name"] for found in slices for each in found["spec"].get("devices", ())]


async def test_the_places_are_published_with_their_counters(node: PartitionedNode) -> None:
    found = await published(node)
    assert {"gpu-0", "gpu-1", SMALL, LARGE} < set(names(found)) and len(names(found)) == 2 * 26
    sets = [each["name"] for one in found for each in one["spec"].get("sharedCounters", ())]
    assert sets == ["gpu-0-counter-set", "gpu-1-counter-set"]
    assert {each["spec"]["pool"]["generation"] for each in found} == {1}


@pytest.mark.parametrize("refuses", [False, True])
async def test_without_counters_whole_gpus_are_published(node: PartitionedNode, refuses: bool) -> None:
    node.kube = OldKube()
    node.kube.refuses = refuses
    node.start()
    found = await published(node)
    assert names(found) == ["gpu-1", "gpu-0"]
    assert not any("sharedCounters" in each["spec"] for each in found)
    with pytest.raises(NotYet, match="which this node does not have now"):
        await node.prepared("c", mig())


async def test_the_gpu_of_a_claim_comes_first_with_all_of_its_places(node: PartitionedNode) -> None:
    await node.prepared("c", mig(device="gpu-1-mig-1g5gb-19-6"))
    node.list_gpus()
    found = names(await published(node))
    assert found[0] == "gpu-1" and len(found) == 2 * 26
