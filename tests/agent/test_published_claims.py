"""What an inventory tells of claims: who holds what, for everyone who cannot ask the agent."""

from pathlib import Path

import pytest

from lamina.agent.inventory.usage import DevicesInUse
from lamina.core.claims import HeldClaim
from lamina.core.gpu_facts import MigInstanceFacts
from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import MigDevice
from tests.agent.claim_nodes import ClaimNode, result
from tests.agent.node import GPU, node_offer


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


def published(node: ClaimNode) -> dict[str, list[Share]]:
    """The shares by claim and request."""
    node.offers.update()
    inventory = node.offers.inventory.value
    assert inventory is not None
    return {f"{claim}/{request.name}": list(request.shares) for claim in inventory.claims for request in claim.requests}


async def test_a_claim_is_published_from_prepare_to_unprepare(node: ClaimNode) -> None:
    await node.prepared("c", result(memory="4Gi", cores=30))
    (share,) = published(node)["default/c/gpu"]
    assert (share.gpu, share.memory_mib, share.cores) == (GPU[0], 4096, 30)
    node.start()
    assert list(published(node)) == ["default/c/gpu"], "also after a restart of the agent"
    await node.unprepare("c")
    assert published(node) == {}


async def test_only_what_takes_something_is_published(node: ClaimNode) -> None:
    await node.prepared("sees", result(adminAccess=True))
    await node.prepared("both", result("a", memory="1Gi"), result("b", adminAccess=True))
    assert list(published(node)) == ["default/both/a"]


def test_a_mig_device_is_an_instance_of_its_gpu() -> None:
    device = MigDevice(GPU[0], MigInstanceFacts(7, "1g.5gb", 4, "MIG-1"), MIG_CARDS["A100-40GB"].profile("1g.5gb"))
    request = ContainerGrant(name="gpu", shares=(Share(gpu="MIG-1", memory_mib=4864, mode=Mode.MIG),))
    claim = HeldClaim(namespace="default", name="c", uid="u", requests=(request,))
    offer = node_offer("n", lambda: DevicesInUse(claims=(claim,)), driver="580", mig_devices=(device,))
    offer.update()
    assert offer.inventory.value is not None
    ((share,),) = [request.shares for claim in offer.inventory.value.claims for request in claim.requests]
    assert (share.gpu, share.memory_mib, share.mig) == (GPU[0], 4864, MigInstance(profile="1g.5gb", start=4))
