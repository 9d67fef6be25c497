"""A pod that is gone keeps its record and files, and is published, for as long as a process of it runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from lamina.agent.cleanup.survivors import SANDBOX_S
from lamina.agent.containers.paths import folder_name
from lamina.core.grants import ContainerGrant
from lamina.core.survivors import MAX_SURVIVORS, Survivor
from lamina.ports.kube import PODS
from lamina.ports.nvml import GpuProcess
from tests.agent.node import GPU, Node, container, pod_watch, share
from tests.enforcement.slots import locked_slot
from tests.waiting import canceled

TERMINATED, RUNS = {"terminated": {"exitCode": 0}}, {"running": {}}


@contextlib.asynccontextmanager
async def watching(node: Node) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in (node.survivors, pod_watch(node))]
    await node.clock.advance(0)
    yield
    await canceled(*tasks)


async def started(node: Node, pod: str = "p", *granted: ContainerGrant, ticket: str = "ticket-0") -> str:
    """A pod whose containers run; its UID."""
    containers = granted or (container("main"),)
    uid = await node.pod(pod, *containers)
    await node.admit(pod, {each.name: [f"{ticket}{number or ''}"] for number, each in enumerate(containers)})
    for number, each in enumerate(containers):
        if not each.init:
            await node.preparer.prepare([f"{ticket}{number or ''}"])
    await tell(node, pod, RUNS)
    return uid


async def tell(node: Node, pod: str, state: dict[str, object], phase: str = "Running") -> None:
    status = {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}
    await node.kube.patch(PODS, pod, {"status": status}, namespace="default", subresource="status")


async def removed_by_force(node: Node, pod: str = "p") -> None:
    """Kubernetes and kubelet forget a pod whose containers run."""
    await node.kube.delete(PODS, pod, namespace="default")
    node.kubelet.listed = [holder for holder in node.kubelet.listed if holder.pod != pod]
    await node.clock.advance(2)


def cgroup(node: Node, uid: str) -> Path:
    """The cgroup of a pod, with processes."""
    path = node.root / f"cgroup/kubepods/besteffort/pod{uid}"
    path.mkdir(parents=True)
    (path / "cgroup.events").write_text("populated 1\n")
    return path


def expected(uid: str, *containers: ContainerGrant) -> Survivor:
    return Survivor(namespace="default", pod="p", pod_uid=uid, containers=containers or (container("main"),))


@contextlib.contextmanager
def process(node: Node, uid: str, evidence: str) -> Iterator[None]:
    """A process of the pod runs for as long as the block, and shows in one way."""
    with contextlib.ExitStack() as stack:
        if evidence == "lock":
            stack.enter_context(locked_slot(node.places.containers / folder_name(uid, "main") / "usage"))
        elif evidence == "cgroup":
            path = cgroup(node, uid)
            stack.callback((path / "cgroup.events").write_text, "populated 0\n")
        else:
            node.nvml.running[GPU[0]] = (GpuProcess(7, 1),)
            node.host.cgroups[7] = f"0::/kubepods/besteffort/pod{uid}/1"
            stack.callback(node.nvml.running.clear)
        yield


@pytest.mark.parametrize("evidence", ["lock", "cgroup", "driver"])
async def test_what_a_pod_has_stays_and_is_published_until_its_processes_are_gone(node: Node, evidence: str) -> None:
    uid = await started(node)
    before = node.disk()
    async with watching(node):
        assert node.published == [()]
        with process(node, uid, evidence):
            await removed_by_force(node)
            await node.releaser.reconcile()
            await node.clock.advance(60)
            assert node.published == [(), (expected(uid),)]
            assert {path: text for path, text in node.disk().items() if not path.startswith("cgroup")} == before
        await node.clock.advance(2)
        await node.releaser.reconcile()
        assert node.published[2:] == [()]
        assert node.record.allocations == ()


async def test_a_pod_without_processes_is_never_published(node: Node) -> None:
    await started(node)
    async with watching(node):
        await removed_by_force(node)
        await node.releaser.reconcile()
        assert node.published == [()] and node.record.allocations == ()


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
async def test_a_sandbox_that_ends_a_little_later_is_not_published(node: Node, phase: str) -> None:
    await ended_with(node, "cgroup", phase)
    assert node.published == [()]
    await node.releaser.reconcile()
    assert node.record.allocations == ()


@pytest.mark.parametrize("evidence", ["lock", "driver"])
async def test_a_container_that_started_again_as_kubelet_reported_its_end_is_published(
    node: Node, evidence: str
) -> None:
    uid = await ended_with(node, evidence)
    assert node.published == [(), (expected(uid),), ()]


async def test_a_cgroup_that_stays_is_no_sandbox(node: Node) -> None:
    uid = await ended_with(node, "cgroup", for_s=SANDBOX_S + 2)
    assert node.published == [(), (expected(uid),), ()]


async def ended_with(node: Node, evidence: str, phase: str = "Running", *, for_s: float = 0) -> str:
    """A pod that is deleted after kubelet has reported its end, and of which a process runs on for a while; its UID."""
    uid = await started(node)
    async with watching(node):
        with process(node, uid, evidence):
            await tell(node, "p", TERMINATED, phase)
            await removed_by_force(node)
            await node.releaser.reconcile()
            assert len(node.record.allocations) == 1
            await node.clock.advance(for_s)
        await node.clock.advance(2)
    return uid


async def test_a_pod_that_failed_because_its_node_was_silent_is_published(node: Node) -> None:
    uid = await started(node)
    async with watching(node):
        with process(node, uid, "lock"):
            await tell(node, "p", RUNS, "Failed")
            await node.clock.advance(2)
            assert node.published[-1] == (expected(uid),)


async def test_a_pod_is_published_while_kubelet_does_not_answer_or_still_lists_it(node: Node) -> None:
    uid = await started(node)
    node.kubelet.broken = "kubelet is away"
    async with watching(node):
        with process(node, uid, "lock"):
            await node.kube.delete(PODS, "p", namespace="default")
            await node.clock.advance(0)
            assert node.published[-1] == (expected(uid),)


async def test_an_agent_that_starts_again_finds_survivors_before_it_publishes_anything(node: Node) -> None:
    uid = await started(node)
    with process(node, uid, "lock"):
        await removed_by_force(node)
        node.start()
        async with watching(node):
            assert node.published == [(expected(uid),)]


async def test_nothing_is_published_before_kubernetes_has_listed_the_pods(node: Node) -> None:
    await started(node)
    await node.survivors.reconcile()
    assert node.published == []


async def test_tickets_that_another_pod_has_now_do_not_free_what_still_runs(node: Node) -> None:
    uid = await started(node)
    async with watching(node):
        with process(node, uid, "lock"):
            await removed_by_force(node)
            await started(node, "q")
            await node.releaser.reconcile()
            bound = [each.bound.pod for each in node.record.allocations if each.bound]
            assert bound == ["p", "q"]
            assert node.published[-1] == (expected(uid),)
        await node.clock.advance(2)
        await node.releaser.reconcile()
        assert [each.bound.pod for each in node.record.allocations if each.bound] == ["q"]


async def test_init_containers_are_published_as_such(node: Node) -> None:
    granted = (container("init", share(0, 3000), init=True), container("main", share(0, 1000)))
    uid = await node.pod("p", *granted)
    await node.admit("p", {"init": ["ticket-0"], "main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    async with watching(node):
        with process(node, uid, "lock"):
            await removed_by_force(node)
            assert node.published[-1] == (expected(uid, *granted),)


async def test_a_native_device_is_kubelets_to_count(node: Node) -> None:
    uid = await started(node, ticket=GPU[0])
    async with watching(node):
        with process(node, uid, "lock"):
            await removed_by_force(node)
            await node.releaser.reconcile()
            assert node.published == [()]
            assert len(node.record.allocations) == 1, "the GPU stays in its mode"


async def test_what_is_published_has_a_bound(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    await started(node)
    (allocation,) = node.record.allocations
    assert allocation.bound is not None
    more = node.record.allocate([[f"more-{number}"] for number in range(MAX_SURVIVORS + 1)])
    bounds = [msgspec.structs.replace(allocation.bound, pod_uid=each.name) for each in more]
    node.record.bind({bound.pod_uid: bound for bound in bounds})
    for bound in bounds:
        cgroup(node, bound.pod_uid)
    async with watching(node):
        await node.clock.advance(10)
        assert len(node.published[-1]) == MAX_SURVIVORS
    [message] = [each for each in caplog.messages if "an inventory holds" in each]
    assert message.startswith(f"Processes of {MAX_SURVIVORS + 1} deleted pods run")
