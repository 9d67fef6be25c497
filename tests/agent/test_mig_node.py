"""S1.3, S1.4: what a node tells of GPUs that grants may cut, and who else may cut or offer them."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.mig.label_partitioner import LABEL, STATE, SUCCESS
from lamina.core.gpus import ExistingMigInstance, Gpu, Mode
from lamina.core.grants import MigInstance, Share
from lamina.core.mig import Placed
from lamina.ports.kube import CONFIG_MAPS, NODES, PODS
from lamina.ports.nvml import FakeNvml, GpuProcess
from tests.agent.mig_nodes import FACTS, GPU
from tests.agent.node import RESOURCE, container
from tests.agent.running_agent import RunningAgent
from tests.worlds.objects import config_map

MODES = "{sharing: {modes: [quota, mig]}, hami: {migStrategy: mixed, deviceSplitCount: 5}}"
OTHER = FACTS[1].uuid


@pytest.fixture
async def node() -> AsyncIterator[RunningAgent]:
    """An agent's node of two A100 with 40 GB."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        made = RunningAgent(Path(folder))
        made.nvml = FakeNvml(FACTS, made.clock)
        await made.kube.create(NODES, {"metadata": {"name": made.node.name, "labels": {}}})
        await made.kubelet.start()
        yield made
        await made.stop()
        await made.kubelet.stop()


async def starts(node: RunningAgent, name: str = "p", gpu: str = GPU) -> None:
    """A pod with a 1g.5gb at 6 starts."""
    share = Share(gpu=gpu, memory_mib=3000, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=6))
    await node.node.pod(name, container("main", share))
    await node.until(lambda: RESOURCE in node.kubelet.devices)
    await node.started(name, f"ticket-{name}")


async def first(node: RunningAgent, **wanted: object) -> Gpu:
    """The first GPU once it is configured like this."""
    found = await node.inventory(
        lambda reported: (
            bool(reported.gpus) and all(getattr(reported.gpus[0], key) == value for key, value in wanted.items())
        )
    )
    return found.gpus[0]


async def label(node: RunningAgent, name: str | None) -> None:
    await node.kube.patch(NODES, node.node.name, {"metadata": {"labels": {LABEL: name}}})


async def test_the_inventory_says_what_may_be_partitioned_and_for_whom(node: RunningAgent) -> None:
    await node.start(MODES)
    idle = await first(node, modes=(Mode.QUOTA, Mode.MIG), mig_card="A100-40GB", mode=None)
    assert not idle.mig_enabled and idle.instances == ()
    await node.devices(RESOURCE, 14)
    await starts(node)
    await first(
        node,
        mode=Mode.MIG,
        mig_enabled=True,
        modes=(Mode.QUOTA, Mode.MIG),
        instances=(ExistingMigInstance(profile="1g.5gb", start=6, made=True),),
    )
    theirs = await node.nvml.create_mig(GPU, Placed("1g.5gb", 0))
    node.nvml.running[theirs.uuid] = (GpuProcess(7, 1),)
    used = ExistingMigInstance(profile="1g.5gb", start=0, used=True)
    await first(node, instances=(used, ExistingMigInstance(profile="1g.5gb", start=6, made=True)))
    assert "nvidia.com/mig-1g.5gb" not in node.kubelet.devices
    node.kubelet.held.clear()
    await node.kube.delete(PODS, "p", namespace="default")
    await first(node, mode=Mode.MIG, mig_enabled=True, instances=(used,))
    node.nvml.running.clear()
    await node.stop()
    await node.start(MODES)
    await first(node, instances=(ExistingMigInstance(profile="1g.5gb", start=0),))
    assert "nvidia.com/mig-1g.5gb" not in node.kubelet.devices


async def test_a_mode_that_is_impossible_is_not_published(node: RunningAgent) -> None:
    node.nvml.present[0] = structs.replace(FACTS[0], mig_capable=False)
    await node.start("sharing: {modes: [mig]}")
    found = await node.inventory(lambda reported: len(reported.gpus) == 2)
    assert [gpu.modes for gpu in found.gpus] == [(Mode.QUOTA,), (Mode.MIG,)]


async def test_the_label_has_precedence_and_is_kept_from_what_a_grant_has(node: RunningAgent) -> None:
    await node.start(MODES)
    await first(node, mode=None)
    await starts(node)
    await label(node, "all-1g.5gb")
    await node.inventory(lambda reported: not any(Mode.MIG in gpu.modes for gpu in reported.gpus))
    await node.devices("nvidia.com/mig-1g.5gb", 13)
    assert ("1g.5gb", 6) in [(each.profile, each.start) for each in node.nvml.instances[GPU]]
    node.kubelet.held.clear()
    await node.kube.delete(PODS, "p", namespace="default")
    await node.devices("nvidia.com/mig-1g.5gb", 14)
    labels = (await node.kube.get(NODES, node.node.name))["metadata"]["labels"]
    assert labels[STATE] == SUCCESS
    await label(node, None)
    await first(node, modes=(Mode.QUOTA, Mode.MIG), instances=(), mode=None)


async def test_s2_10_a_reset_undoes_what_was_made_for_grants_and_labels(node: RunningAgent) -> None:
    await node.kube.create(CONFIG_MAPS, config_map(MODES))
    await node.nvml.set_mig_mode(OTHER, True)
    theirs = await node.nvml.create_mig(OTHER, Placed("2g.10gb", 0))
    await node.start(MODES)
    await first(node, mode=None)
    await starts(node)
    await starts(node, "q", OTHER)
    [made] = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1),)
    await disable(node)
    left = ("GPU 0 keeps 1g.5gb at 6: it is in use by process 7",)
    await node.inventory(lambda reported: not reported.gpus and reported.mig_leftovers == left)
    node.nvml.running.clear()
    await node.inventory(lambda reported: reported.mig_leftovers == ())
    assert [gpu.mig_enabled for gpu in node.nvml.present] == [False, True]
    assert node.nvml.instances == {GPU: (), OTHER: (theirs,)}


async def test_s2_10_a_reset_undoes_the_layout_of_the_label(node: RunningAgent) -> None:
    await node.kube.create(CONFIG_MAPS, config_map("hami: {migStrategy: mixed}"))
    await label(node, "all-balanced")
    await node.start("hami: {migStrategy: mixed}")
    await node.devices("nvidia.com/mig-3g.20gb", 2)
    await disable(node)
    await node.until(lambda: not any(gpu.mig_enabled for gpu in node.nvml.present))
    assert not any(node.nvml.instances.values())


async def disable(node: RunningAgent) -> None:
    """All pods are gone, and the configuration is as `lamina reset` leaves it."""
    node.kubelet.held.clear()
    for pod in (await node.kube.list(PODS)).items:
        await node.kube.delete(PODS, pod["metadata"]["name"], namespace="default")
    body = {"data": {"lamina.yaml": "enabled: false"}}
    await node.kube.patch(CONFIG_MAPS, "lamina", body, namespace="lamina-system")
