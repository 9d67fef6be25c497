"""A GPU that grants share is not allocated by kubelet too, whatever either knew a moment ago."""

from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.inventory.native_devices import native_kind
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.prepare.preparers import NativePreparer, NativeRules
from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.gpus import Mode
from lamina.core.mig import Placed
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MIXED, MigDevice
from lamina.core.sharing import ReplicaSharing
from lamina.errors import NotYet
from tests.agent.mig_nodes import FACTS, GPU, admitted, instance, partitioned_node, start
from tests.agent.node import RESOURCE, Node, container, node_offer, share

OTHER = FACTS[1].uuid
PROFILE = MIG_CARDS["A100-40GB"].profile("1g.5gb")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return partitioned_node(tmp_path)


def plain(node: Node, offer: NodeOfferStore, resource: str) -> NativePreparer:
    rules = NativeRules(
        mode=Mode.WHOLE,
        limit_memory=False,
        config=NvidiaConfig(),
        require_unpartitioned=node.on_demand.require_unpartitioned,
    )
    return NativePreparer(node.context, native_kind(resource, ReplicaSharing()), rules, offer, node.steps())


def offered(node: Node) -> NodeOfferStore:
    offer = node_offer(node.name, mig_strategy=MIXED)
    offer.update(driver="535.1", observed=tuple(node.gpus.values()))
    return offer


async def given(node: Node, name: str, device: str, resource: str = RESOURCE) -> None:
    """Kubelet gives a device to a pod without a grant."""
    await node.pod(name)
    node.record.allocate([[device]], resource)
    node.kubelet.hold(name, "main", device)


async def test_kubelet_gave_out_a_gpu_that_a_grant_has_by_now(node: Node) -> None:
    await node.pod("a", container("main", structs.replace(share(), gpu=GPU)))
    await node.admit("a", {"main": ["ticket-a-0"]})
    await start(node, "a")
    await given(node, "b", GPU)
    await given(node, "c", OTHER)
    preparer = plain(node, offered(node), "nvidia.com/gpu")
    with pytest.raises(NotYet, match=f"{GPU} is in mode quota as long as pod default/a uses it"):
        await preparer.prepare([GPU])
    await preparer.prepare([OTHER])
    await start(node, "a")


async def test_an_init_container_may_be_the_only_one_with_a_gpu(node: Node) -> None:
    uid = await node.pod("b")
    node.record.allocate([[GPU]], RESOURCE)
    node.checkpoint(uid, {"init": [GPU]})
    await plain(node, offered(node), RESOURCE).prepare([GPU])
    assert [allocation.bound.pod_uid for allocation in node.record.allocations if allocation.bound] == [uid]


async def test_a_grant_has_a_gpu_that_kubelet_gave_out_before(node: Node) -> None:
    await given(node, "b", GPU)
    await plain(node, offered(node), "nvidia.com/gpu").prepare([GPU])
    for name, gpu in (("a", GPU), ("c", OTHER)):
        await node.pod(name, container("main", structs.replace(share(mode=Mode.WHOLE), gpu=gpu)))
        await node.admit(name, {"main": [f"ticket-{name}-0"]})
    with pytest.raises(NotYet, match=f"{GPU} is in mode whole as long as pod default/b uses it"):
        await start(node, "a")
    await start(node, "c")


async def test_kubelet_gave_out_a_mig_device_that_a_grant_has_by_now(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    there = [await node.nvml.create_mig(GPU, Placed("1g.5gb", start)) for start in (5, 6)]
    offer = offered(node)
    offer.update(mig_devices=tuple(MigDevice(GPU, each, PROFILE) for each in there))
    await admitted(node, "a", instance(start=6))
    await start(node, "a")
    preparer = plain(node, offer, "nvidia.com/mig-1g.5gb")
    for name, each in zip(("free", "granted"), there, strict=True):
        await given(node, name, each.uuid, "nvidia.com/mig-1g.5gb")
    await preparer.prepare([there[0].uuid])
    with pytest.raises(NotYet, match=f"{there[1].uuid} has been granted to another pod"):
        await preparer.prepare([there[1].uuid])
