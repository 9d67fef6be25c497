"""Preparing claims: what their containers get, and what is refused."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.containers.paths import write_limits
from lamina.agent.resource_claims import preparer as preparer_module
from lamina.dra.names import DRIVER, cdi_name
from lamina.enforcement.limits import read_limits
from lamina.errors import BadInput, LaminaError, NotYet
from lamina.ports.kube import RESOURCE_CLAIMS
from tests.agent.claim_nodes import ClaimNode, ref, result
from tests.agent.node import GPU, container, share


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


async def refused(node: ClaimNode, name: str, sentence: str, error: type[LaminaError] = NotYet) -> None:
    with pytest.raises(error, match=sentence):
        await node.prepare(name)


async def test_all_containers_of_a_request_have_the_limits_of_its_share(node: ClaimNode) -> None:
    (ready,) = await node.prepared("c", result(memory="4Gi", cores=30))
    assert ready.cdi_devices == (f"lamina.dev/ticket={cdi_name('uid-of-c', 'gpu')}",)
    assert (ready.device.device, ready.device.share_id) == ("gpu-0", "share-of-gpu")
    assert node.visible("c") == GPU[0]
    assert node.limits_of("c") == "gpu:0:4096"


async def test_real_limits_are_those_of_the_share(node: ClaimNode) -> None:
    node.claims = node.claim_preparer(write_limits)
    await node.prepared("c", result(memory="4Gi", cores=30))
    (device,) = read_limits(node.places.containers / "uid-of-c_gpu" / "limits").devices
    assert (device.uuid, device.memory_bytes, device.cores_percent) == (GPU[0], 4 << 30, 30)
    assert device.compute_policy.value == "cap"


FIRST = {
    "source": "FromClaim",
    "requests": ["a"],
    "opaque": {
        "driver": DRIVER,
        "parameters": {"apiVersion": "lamina.dev/v1alpha1", "kind": "ShareConfig", "latencyClass": True},
    },
}


async def test_a_share_may_be_of_the_latency_class(node: ClaimNode) -> None:
    sharing = structs.replace(node.context.config.sharing, high_priority_namespaces=("default",))
    node.context = replace(node.context, config=structs.replace(node.context.config, sharing=sharing))
    node.claims = node.claim_preparer(write_limits)
    await node.claim("c", result("a", memory="4Gi"), result("b", memory="2Gi"), config=[FIRST])
    await node.prepare("c")
    folders = {name: node.places.containers / f"uid-of-c_{name}" / "limits" for name in "ab"}
    assert {name: read_limits(each).priority for name, each in folders.items()} == {"a": 0, "b": 1}


async def test_the_latency_class_needs_permission(node: ClaimNode) -> None:
    await node.claim("c", result("a", memory="4Gi"), config=[FIRST])
    sentence = (
        "request a: ShareConfig must not say latencyClass in the namespace default, which "
        "sharing.highPriorityNamespaces in Lamina's configuration does not name"
    )
    await refused(node, "c", sentence, BadInput)
    assert node.left() == []


@pytest.mark.parametrize("whole", [result(), result(memory="32Gi"), result(memory="32Gi", cores=100)])
async def test_a_whole_gpu_has_no_facade(node: ClaimNode, whole: Any) -> None:
    await node.prepared("c", whole)
    assert node.visible("c") == GPU[0]
    assert not any("lamina/limits" in str(each) for each in node.spec(cdi_name("uid-of-c", "gpu"))["mounts"])  # type: ignore[index]
    assert node.left() == [f"cdi/lamina.dev-ticket_{cdi_name('uid-of-c', 'gpu')}.json"]


async def test_several_devices_of_a_request_are_visible_together_and_one_cdi_device(node: ClaimNode) -> None:
    first, second = await node.prepared("c", result(device="gpu-2"), result(device="gpu-1"))
    assert node.visible("c") == f"{GPU[1]},{GPU[2]}"
    assert (len(first.cdi_devices), len(second.cdi_devices)) == (1, 0)


async def test_two_shares_of_one_request_on_one_gpu_are_one_limit(node: ClaimNode) -> None:
    await node.prepared("c", result(memory="4Gi"), result(memory="2Gi", shareID="other"))
    assert node.limits_of("c") == "gpu:0:6144"


@pytest.mark.parametrize(("more", "fits"), [("12Gi", True), ("13Gi", False), ("30Gi", False)])
async def test_requests_of_a_claim_have_no_more_than_their_gpu(node: ClaimNode, more: str, fits: bool) -> None:
    """As a faulty scheduler could allocate them."""
    await node.claim("c", result("one", memory="20Gi"), result("two", memory=more))
    if fits:
        await node.prepare("c")
    else:
        await refused(node, "c", "the requests of the claim add up to more than gpu-0 has", BadInput)
    assert bool(node.context.record.claims) == fits


async def test_each_request_has_limits_of_its_own(node: ClaimNode) -> None:
    await node.prepared("c", result("a", memory="4Gi"), result("b/small", memory="2Gi"))
    assert (node.limits_of("c", "a"), node.limits_of("c", "b")) == ("a:0:4096", "b:0:2048")


async def test_kubelet_may_call_again(node: ClaimNode) -> None:
    first = await node.prepared("c")
    usage = node.places.containers / "uid-of-c_gpu" / "usage"
    usage.write_text("an account")
    before = node.disk()
    assert await node.prepare("c") == first
    assert node.disk() == before
    node.start()
    await reconcile(node.context)
    assert await node.prepare("c") == first
    assert node.disk() == before
    await node.unprepare("c")
    await node.unprepare("c")
    assert node.left() == [] and node.context.record.claims == {}


@pytest.mark.parametrize("lost", ["cdi", "containers", "cdi containers"])
async def test_after_a_restart_of_the_machine_what_is_in_memory_is_made_again(node: ClaimNode, lost: str) -> None:
    """The directories of CDI specs, and those of containers, are file systems in memory."""
    await node.prepared("c")
    before = node.disk()
    for name in lost.split():
        folder: Path = getattr(node.places, name)
        shutil.rmtree(folder)
        folder.mkdir()
    node.start()
    await node.prepare("c")
    assert node.disk() == before


async def test_a_claim_that_is_unknown_or_not_of_this_node_is_refused(node: ClaimNode) -> None:
    await refused(node, "c", "claim default/c with the UID uid-of-c does not exist in Kubernetes")
    await node.claim("c", result(pool="node-2"))
    await refused(node, "c", r"has no device of gpu\.nvidia\.com on node-1")
    with pytest.raises(NotYet, match="with the UID other does not exist"):
        await node.claims.prepare(ref("c")._replace(uid="other"))
    await node.claim("d", result(device="gpu-9"))
    await refused(node, "d", "has the device gpu-9, which this node does not have now")
    await node.unprepare("c")
    assert node.left() == []


async def test_a_new_claim_waits_for_the_end_of_the_old_one(node: ClaimNode) -> None:
    """Kubelet may prepare a claim before it unprepares one whose pod has ended."""
    await node.prepared("old", result(memory="30Gi"))
    await node.prepared("small", result(memory="2Gi"))
    await node.claim("new", result(memory="4Gi"))
    await refused(node, "new", "gpu-0 has no room for the claim as long as it is prepared for default/old, default/sm")
    assert [str(each) for each in node.context.record.claims.values()] == ["default/old", "default/small"]
    await node.unprepare("old")
    await node.prepare("new")
    await node.claim("whole", result())
    await refused(node, "whole", "has no room")


async def test_cores_are_not_given_twice(node: ClaimNode) -> None:
    await node.prepared("a", result(memory="1Gi", cores=60))
    await node.claim("b", result(memory="1Gi", cores=50))
    await refused(node, "b", "has no room")
    await node.prepared("c", result(memory="1Gi", cores=40))


async def test_a_claim_stays_as_long_as_its_processes_run(node: ClaimNode, monkeypatch: pytest.MonkeyPatch) -> None:
    await node.prepared("c")
    monkeypatch.setattr(preparer_module, "is_in_use", lambda usage: usage.parent.name == "uid-of-c_gpu")
    with pytest.raises(NotYet, match="processes of claim default/c still run"):
        await node.unprepare("c")
    assert node.limits_of("c") == "gpu:0:4096"
    await node.claim("d", result())
    await refused(node, "d", "has no room")


async def test_a_claim_that_was_allocated_again_is_prepared_again(node: ClaimNode) -> None:
    await node.prepared("c", result("a", memory="4Gi"))
    status = {"allocation": {"devices": {"results": [result("b", "gpu-1", memory="1Gi")]}}}
    await node.kube.patch(RESOURCE_CLAIMS, "c", {"status": status}, namespace="default")
    await node.prepare("c")
    assert node.limits_of("c", "b") == "b:1:1024"
    assert node.spec(cdi_name("uid-of-c", "a")) is None
    assert node.context.record.claimed == {GPU[1]: "default/c"}


async def test_admin_access_takes_nothing_and_has_no_limits(node: ClaimNode) -> None:
    await node.prepared("tenant", result(memory="30Gi"))
    node.observe(gpu0="the driver reported XID 79")
    (ready,) = await node.prepared("admin", result(adminAccess=True))
    assert ready.device.admin and node.visible("admin") == GPU[0]
    assert node.context.record.claimed == {GPU[0]: "default/tenant"}
    assert node.places.containers.joinpath("uid-of-admin_gpu").exists() is False


async def test_an_unhealthy_gpu_is_refused(node: ClaimNode) -> None:
    node.observe(gpu0="the driver reported XID 79")
    await node.claim("c")
    await refused(node, "c", "is unhealthy: the driver reported XID 79")
    assert node.context.record.claims == {}


async def grant(node: ClaimNode, gpu: int) -> None:
    await node.pod("p", container("main", share(gpu)))
    await node.admit("p", {"main": ["ticket-0"]})


async def test_a_gpu_that_a_grant_has_is_refused(node: ClaimNode) -> None:
    await grant(node, 0)
    await node.claim("c")
    await refused(node, "c", f"{GPU[0]} is in use by pod default/p through the device plugin")
    await node.preparer.prepare(["ticket-0"])
    await refused(node, "c", f"{GPU[0]} is in use by pod default/p through the device plugin; the claim waits")
    await node.prepared("d", result(device="gpu-1", memory="1Gi"))


async def test_a_gpu_that_a_claim_has_is_refused_to_a_grant(node: ClaimNode) -> None:
    await node.prepared("c")
    await grant(node, 0)
    with pytest.raises(NotYet, match=f"{GPU[0]} is in use by the ResourceClaim default/c"):
        await node.preparer.prepare(["ticket-0"])
    assert all(each.bound is None for each in node.record.allocations)
    await node.unprepare("c")
    await node.preparer.prepare(["ticket-0"])


def ticketed(node: ClaimNode) -> int:
    (devices,) = [each.value for each in node.offers.tickets.values()]
    return sum(device.healthy for device in devices)


async def test_neither_door_gives_away_what_the_other_has(node: ClaimNode) -> None:
    every = ticketed(node)

    def offered() -> list[str]:
        return [device.name for device in node.offer.free]

    def by_grant() -> list[bool]:
        inventory = node.offers.inventory.value
        return [gpu.by_grant for gpu in inventory.gpus] if inventory else []

    assert offered() == ["gpu-3", "gpu-2", "gpu-1", "gpu-0"] and by_grant() == [True] * 4
    await node.prepared("c", result(device="gpu-2", memory="1Gi"))
    assert offered() == ["gpu-2", "gpu-3", "gpu-1", "gpu-0"] and by_grant() == [True, True, False, True]
    assert ticketed(node) == every, "without tickets, kube-scheduler would make claims for pods that want shares"
    await grant(node, 0)
    await node.preparer.prepare(["ticket-0"])
    assert offered() == ["gpu-2", "gpu-3", "gpu-1"]
    await node.unprepare("c")
    assert offered() == ["gpu-3", "gpu-2", "gpu-1"] and by_grant() == [True] * 4
