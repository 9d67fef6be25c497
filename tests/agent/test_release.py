"""Nothing outlives its pod, and nothing goes while kubelet still lists it."""

import asyncio
from collections.abc import Collection

import pytest

from lamina.agent.cleanup.release import UNCLAIMED_S, UNLISTED_S
from lamina.ports.kube import GRANTS, PODS
from lamina.ports.kubelet.allocations import Holder
from tests.agent.node import RESOURCE, Node, container
from tests.waiting import canceled


async def started(node: Node, pod: str = "p", ticket: str = "ticket-0") -> str:
    """A pod whose container runs; its name."""
    await node.pod(pod, container("main"))
    names = await node.admit(pod, {"main": [ticket]})
    await node.preparer.prepare([ticket])
    return names["main"]


def made(node: Node) -> list[str]:
    return [path for path in node.disk() if path.startswith(("cdi", "containers"))]


async def test_a_running_pod_keeps_everything(node: Node) -> None:
    await started(node)
    before = node.disk()
    await node.releaser.reconcile()
    assert node.disk() == before


async def test_a_pod_that_is_gone_leaves_nothing(node: Node) -> None:
    await started(node)
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "p", namespace="default")
    await node.releaser.reconcile()
    assert made(node) == []
    assert node.record.allocations == ()
    await node.releaser.reconcile()


async def test_kubelet_lists_a_pod_that_kubernetes_forgot(node: Node) -> None:
    await started(node)
    await node.kube.delete(PODS, "p", namespace="default")
    await node.releaser.reconcile()
    assert len(made(node)) == 3


async def test_kubelets_list_is_empty_for_a_moment(node: Node) -> None:
    name = await started(node)
    node.kubelet.listed.clear()
    await node.releaser.reconcile()
    assert node.spec(name) is not None


async def test_a_missing_grant_alone_releases_nothing(node: Node) -> None:
    name = await started(node)
    (grant,) = (await node.kube.list(GRANTS)).items
    await node.kube.delete(GRANTS, grant["metadata"]["name"], namespace="default")
    await node.releaser.reconcile()
    assert node.spec(name) is not None


async def test_a_finished_pod_is_released(node: Node) -> None:
    await started(node)
    node.kubelet.listed.clear()
    await node.kube.patch(PODS, "p", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
    await node.releaser.reconcile()
    assert made(node) == []


async def test_a_newer_pod_of_the_same_name_does_not_keep_the_older_one(node: Node) -> None:
    old = await started(node)
    await node.kube.delete(PODS, "p", namespace="default")
    node.kubelet.listed.clear()
    new = await started(node, ticket="ticket-5")
    await node.releaser.reconcile()
    assert node.spec(old) is None
    assert node.spec(new) is not None


async def test_tickets_given_to_another_pod_are_free_of_the_first(node: Node) -> None:
    old = await started(node)
    await node.kube.delete(PODS, "p", namespace="default")
    node.kubelet.listed.clear()
    new = await started(node)
    assert node.spec(old) is not None
    await node.releaser.reconcile()
    assert node.spec(old) is None
    assert node.spec(new) is not None


async def test_devices_assigned_again_to_the_same_pod_release_nothing(node: Node) -> None:
    """A kubelet that lost its file assigns devices again while the container runs."""
    name = await started(node)
    again = await node.admit("p", {"main": ["ticket-0"]})
    await node.releaser.reconcile()
    assert node.spec(name) is not None
    assert {each.name for each in node.record.allocations} == {name, again["main"]}


async def test_two_sweeps_at_once_do_not_disturb_each_other(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that waits for others' parts to go begins a sweep, whatever else sweeps at that moment."""
    old = await started(node)
    await node.kube.delete(PODS, "p", namespace="default")
    node.kubelet.listed.clear()
    new = await started(node)
    listed = node.kubelet.holders

    async def slowly(resources: Collection[str]) -> tuple[Holder, ...]:
        await asyncio.sleep(0)
        return await listed(resources)

    monkeypatch.setattr(node.kubelet, "holders", slowly)
    await asyncio.gather(node.releaser.reconcile(), node.releaser.reconcile())
    assert node.spec(old) is None
    assert node.spec(new) is not None


async def test_one_pods_end_leaves_the_others_alone(node: Node) -> None:
    await started(node, "p", "ticket-0")
    other = await started(node, "q", "ticket-1")
    node.kubelet.listed = [holder for holder in node.kubelet.listed if holder.pod == "q"]
    await node.kube.delete(PODS, "p", namespace="default")
    await node.releaser.reconcile()
    assert node.spec(other) is not None
    assert len(made(node)) == 3


async def waiting(node: Node, pod: str) -> None:
    """A pod of this node that asks for tickets."""
    limits = {"resources": {"limits": {RESOURCE: "1"}}}
    spec = {"nodeName": node.name, "containers": [{"name": "main", **limits}]}
    await node.kube.create(PODS, {"metadata": {"name": pod, "namespace": "default"}, "spec": spec})


async def forgotten(node: Node, after_s: float) -> bool:
    """Whether the name of the first ticket is forgotten after so long, and not a second before."""
    await node.releaser.reconcile()
    await node.clock.advance(after_s - 1)
    await node.releaser.reconcile()
    assert len(node.record.allocations) == 2
    await node.clock.advance(1)
    await node.releaser.reconcile()
    return [allocation.tickets for allocation in node.record.allocations] == [{"ticket-1"}]


async def test_a_name_that_no_container_can_use_is_forgotten_soon(node: Node) -> None:
    node.allocate("ticket-0")
    node.allocate("ticket-1")
    await waiting(node, "p")
    node.kubelet.hold("p", "main", "ticket-1")
    assert await forgotten(node, UNLISTED_S)


async def test_a_name_for_which_a_pod_may_come_that_kubelet_does_not_list_is_kept_long(node: Node) -> None:
    node.allocate("ticket-0")
    node.allocate("ticket-1")
    node.kubelet.hold("p", "main", "ticket-1")
    await waiting(node, "q")
    assert await forgotten(node, UNCLAIMED_S)


async def test_a_name_is_kept_while_its_tickets_are_listed_now_and_then(node: Node) -> None:
    node.allocate("ticket-0")
    for _ in range(5):
        await node.releaser.reconcile()
        await node.clock.advance(UNLISTED_S - 1)
        node.kubelet.hold("p", "main", "ticket-0")
        await node.releaser.reconcile()
        node.kubelet.listed.clear()
        await node.clock.advance(1)
    assert len(node.record.allocations) == 1


async def test_sweeping_goes_on_after_kubelet_was_away(node: Node) -> None:
    await started(node)
    node.kubelet.broken = "kubelet is away"
    task = asyncio.create_task(node.releaser.run())
    await node.clock.advance(5)
    assert len(made(node)) == 3
    node.kubelet.broken = ""
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "p", namespace="default")
    await node.clock.advance(2)
    assert made(node) == []
    await canceled(task)
