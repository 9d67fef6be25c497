"""One bad object of each kind that the agent reads: it is set aside by name, and the others count."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import grpc
import pytest
from msgspec import structs

from lamina.agent.cleanup import pod_watch
from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.cleanup.pod_watch import PodWatch
from lamina.agent.compat import node_watch
from lamina.agent.inventory.monitor import CheckedNvml
from lamina.agent.mig import grant_partitioner
from lamina.agent.mps.daemons import DaemonSupervisor
from lamina.agent.nvidia import config_watch
from lamina.agent.prepare import preparers
from lamina.agent.state import cluster
from lamina.agent.state.observed import PodOwners
from lamina.config_source import live
from lamina.configuration import DEFAULT
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, NODES, PODS
from lamina.ports.nvml.fake import FakeNvml
from tests.agent import mps
from tests.agent.mig_nodes import FACTS as CAPABLE
from tests.agent.mig_nodes import admitted, instance, partitioned_node, start
from tests.agent.node import FACTS, RESOURCE, Node, container
from tests.agent.planted import LABEL, MinedAgent
from tests.worlds.planted import Planted, raising

BAD = "bad"


def about(obj: object, *_: object) -> bool:
    """Whether an object is the bad one."""
    return f'"{BAD}' in json.dumps(obj)


async def two_pods(node: Node) -> tuple[str, str]:
    """The UIDs of a bad pod and a good one, each with a grant."""
    return await node.pod(BAD, container("main")), await node.pod("good", container("main"))


async def test_a_pod_counts_as_one_that_may_use_everything(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    uids = await two_pods(node)
    monkeypatch.setattr(cluster, "pod_status", raising(about, cluster.pod_status))
    monkeypatch.setattr(cluster, "requested", raising(about, cluster.requested))
    assert await node.cluster.list_pod_uids() == set(uids)
    assert await node.cluster.list_pods_requesting({RESOURCE}) == {("default", BAD)}
    assert node.context.aside.counts == {"pods": 1, "requests of a pod": 1}


async def test_a_pod_that_is_watched_has_not_ended(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    uids = await two_pods(node)
    observed: list[str] = []
    survivors: Any = Mock(observe=observed.append, observe_list=AsyncMock(), observe_end=AsyncMock())
    monkeypatch.setattr(pod_watch, "has_terminated", raising(about, pod_watch.has_terminated))
    watching = asyncio.create_task(PodWatch(node.context, survivors, node.sizes, PodOwners(), Mock()).run())
    await node.clock.advance(1)
    watching.cancel()
    assert observed == list(uids)
    assert node.context.aside.counts == {"state of a pod": 1}


async def test_a_grant_is_as_none(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await two_pods(node)
    monkeypatch.setattr(cluster, "read_grant", raising(about, cluster.read_grant))
    assert (await node.cluster.list_grants()).keys() == {"default/good"}
    assert node.context.aside.counts == {"grants": 1}
    assert f"Setting aside grants default/{BAD}" in caplog.text


async def test_a_pod_to_release_stays(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ticket in ((BAD, "ticket-0"), ("good", "ticket-1")):
        await node.pod(name, container("main"))
        await node.admit(name, {"main": [ticket]})
        await node.preparer.prepare([ticket])
    node.kubelet.listed.clear()
    await node.kube.patch(PODS, BAD, {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    await node.kube.delete(PODS, "good", namespace="default")
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "pod_status", raising(about, cluster.pod_status))
        await node.releaser.reconcile()
    assert [each.bound.pod for each in node.record.allocations if each.bound] == [BAD]
    assert node.context.aside.counts == {"pod to release": 1}
    await node.releaser.reconcile()
    assert node.record.allocations == ()


class StubbornFiles(Files):
    """A file system that does not remove one directory."""

    stubborn = ""

    def remove_tree(self, path: Path) -> None:
        if self.stubborn and path.name.startswith(self.stubborn):
            raise Planted("planted")
        super().remove_tree(path)


async def test_a_directory_that_cannot_be_removed(tmp_path: Path) -> None:
    files = StubbornFiles()
    node = Node(tmp_path, files)
    uids = await two_pods(node)
    for name, ticket in ((BAD, "ticket-0"), ("good", "ticket-1")):
        await node.admit(name, {"main": [ticket]})
        await node.preparer.prepare([ticket])
        await node.kube.delete(PODS, name, namespace="default")
    node.kubelet.listed.clear()
    files.stubborn = uids[0]
    await node.releaser.reconcile()
    await node.releaser.reconcile()
    assert [path.name for path in node.places.containers.iterdir()] == [f"{uids[0]}_main"]
    assert [each.bound.pod for each in node.record.allocations if each.bound] == [BAD]
    assert node.context.aside.counts == {"files to remove": 1}
    files.stubborn = ""
    await node.releaser.reconcile()
    assert node.record.allocations == ()


async def test_an_unknown_directory_that_cannot_be_removed(tmp_path: Path) -> None:
    files = StubbornFiles()
    files.stubborn = BAD
    node = Node(tmp_path, files)
    for name in (f"{BAD}_main", "good_main"):
        (node.places.containers / name).mkdir(parents=True)
    await reconcile(node.context)
    assert [path.name for path in node.places.containers.iterdir()] == [f"{BAD}_main"]
    assert node.context.aside.counts == {"unknown file": 1}


async def test_a_gpu_that_cannot_be_described_is_as_one_that_does_not_answer(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    huge = structs.replace(FACTS[0], memory_mib=1 << 60)
    checked = CheckedNvml(FakeNvml([huge, *FACTS[1:]]), DEFAULT.for_node(node.name), node.context.aside)
    assert await checked.gpus() == tuple(FACTS[1:])
    assert await checked.gpus() == tuple(FACTS[1:])
    assert node.context.aside.counts == {"GPU": 1}
    assert f"Setting aside GPU {huge.uuid}" in caplog.text


async def test_the_instances_of_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = partitioned_node(tmp_path)
    for number, facts in enumerate(CAPABLE):
        await admitted(node, f"p{number}", instance(gpu=facts.uuid))
        await start(node, f"p{number}")
        await node.kube.delete(PODS, f"p{number}", namespace="default")
    node.kubelet.listed.clear()
    await node.releaser.reconcile()
    with monkeypatch.context() as patch:
        read = grant_partitioner.instance_at
        patch.setattr(grant_partitioner, "instance_at", raising(lambda gpu, _: gpu == CAPABLE[0].uuid, read))
        await node.on_demand.reconcile()
    assert [len(node.nvml.instances.get(facts.uuid, ())) for facts in CAPABLE] == [1, 0]
    assert node.instances.left == ("planted",)
    assert node.context.aside.counts == {"MIG instances": 1}
    await node.on_demand.reconcile()
    assert not any(node.nvml.instances.values())


async def test_the_daemon_of_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = mps.MpsNode(tmp_path)
    node.start()
    step = DaemonSupervisor._step
    with monkeypatch.context() as patch:
        patch.setattr(DaemonSupervisor, "_step", raising(lambda _, gpu, *__: gpu == mps.FIRST, step))
        await node.reconcile()
    assert node.state(mps.FIRST) == ("failed", "planted")
    assert node.state(mps.SECOND) == ("ready", "")
    await node.reconcile()
    assert node.state(mps.FIRST) == ("ready", "")


@pytest.fixture
async def running(mined: MinedAgent) -> AsyncIterator[MinedAgent]:
    await mined.begin()
    await mined.inventory(lambda found: len(found.gpus) == 2)
    yield mined


async def test_a_configuration(running: MinedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "load", raising(lambda text, _: BAD in text, live.load))
    name, meta = "lamina", {"name": "lamina", "namespace": "lamina-system"}
    await running.kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": f"# {BAD}"}})
    await running.until(lambda: running.aside.counts.get("configmaps"))
    assert running.alive
    data = {"data": {"lamina.yaml": "hami: {deviceSplitCount: 3}"}}
    await running.kube.patch(CONFIG_MAPS, name, data, namespace="lamina-system")
    await running.inventory(lambda found: {gpu.slots for gpu in found.gpus} == {3})


async def test_a_configuration_of_nvidia_s_plugin(running: MinedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_watch, "load", raising(lambda _, where: "mps" in where, config_watch.load))
    await running.kube.patch(NODES, running.node.name, {"metadata": {"labels": {LABEL: "mps"}}})
    await running.until(lambda: running.aside.counts.get("configuration of NVIDIA's plugin"))
    await running.kube.patch(NODES, running.node.name, {"metadata": {"labels": {LABEL: "sliced"}}})
    await running.inventory(lambda found: bool(found.native_resources) and found.native_resources[0].replicas == 4)


async def test_a_node_object(running: MinedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_watch, "observed_node", raising(about, node_watch.observed_node))
    note = "hami.io/device-cordon"
    await running.kube.patch(NODES, running.node.name, {"metadata": {"annotations": {note: BAD}}})
    await running.until(lambda: running.aside.counts.get("nodes"))
    await running.kube.patch(NODES, running.node.name, {"metadata": {"annotations": {note: CAPABLE[0].uuid}}})
    await running.inventory(lambda found: found.gpus[0].cordoned)


async def test_a_container_that_starts(running: MinedAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubelet gets a sentence to show on the pod."""
    plan = preparers.make_plan
    monkeypatch.setattr(preparers, "make_plan", raising(lambda _, pod, *__: pod.name == BAD, plan))
    await running.node.pod(BAD, container("main"))
    with pytest.raises(grpc.RpcError) as caught:
        await running.started(BAD, "ticket-0")
    assert caught.value.details() == "Lamina: planted; see the agent's log"
    assert running.aside.counts == {"container": 1}
    await running.node.pod("good", container("main"))
    await running.started("good", "ticket-1")
