"""S1.3: a grant's MIG instance is made before its container starts and goes after it, whatever happens in between."""

import itertools
from pathlib import Path

import pytest

from lamina.core.gpus import Mode
from lamina.core.grants import Share
from lamina.core.mig import Placed
from lamina.errors import LaminaError, NotYet
from lamina.ports.kube import PODS
from lamina.ports.nvml import GpuProcess
from tests.agent.mig_nodes import FACTS, GPU, admitted, instance, look, on, partitioned_node, start
from tests.agent.node import Node
from tests.worlds.deaths import Life


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return partitioned_node(tmp_path)


async def end(node: Node, name: str) -> None:
    """The pod goes, and everything that was made for it."""
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, name, namespace="default")
    await node.releaser.reconcile()
    await node.on_demand.reconcile()


def places(node: Node, gpu: str = GPU) -> list[tuple[str, int]]:
    return sorted((each.profile, each.start) for each in node.nvml.instances.get(gpu, ()))


async def test_an_instance_is_made_for_one_container_and_destroyed_after_it(node: Node) -> None:
    name = await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    assert (made.profile, made.start) == ("1g.5gb", 6)
    edits = node.spec(name)
    assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={made.uuid}"]
    assert [each["containerPath"] for each in edits["mounts"]] == [f"/var/run/nvidia-container-devices/{made.uuid}"]
    assert node.files.names(node.places.containers) == []
    await start(node, "p")
    assert node.nvml.instances[GPU] == (made,)
    await end(node, "p")
    assert places(node) == []
    assert on(node)
    assert node.made.instances == frozenset()


async def test_a_container_may_have_several_of_one_gpu_or_of_several(node: Node) -> None:
    shares = (instance("3g.20gb", 4), instance("2g.10gb", 0), instance("1g.5gb", 2, gpu=FACTS[1].uuid))
    name = await admitted(node, "p", *shares)
    await start(node, "p", 3)
    by_place = {(gpu, each.start): each.uuid for gpu, found in node.nvml.instances.items() for each in found}
    wanted = [by_place[GPU, 0], by_place[GPU, 4], by_place[FACTS[1].uuid, 2]]
    edits = node.spec(name)
    assert edits is not None and edits["env"] == ["NVIDIA_VISIBLE_DEVICES=" + ",".join(wanted)]
    await end(node, "p")
    assert places(node) == places(node, FACTS[1].uuid) == []


async def test_what_others_hold_stays_when_a_pod_goes(node: Node) -> None:
    for name, start_at in (("a", 0), ("b", 1)):
        await admitted(node, name, instance(start=start_at))
        await start(node, name)
    node.kubelet.listed[:] = [each for each in node.kubelet.listed if each.pod == "b"]
    await node.kube.delete(PODS, "a", namespace="default")
    await node.releaser.reconcile()
    await node.on_demand.reconcile()
    assert places(node) == [("1g.5gb", 1)]


async def test_after_a_reboot_a_container_gets_its_instance_again(node: Node) -> None:
    name = await admitted(node, "p", instance())
    await start(node, "p")
    node.nvml.instances.clear()
    node.nvml.present = list(FACTS)
    node.start()
    await node.on_demand.reconcile()
    assert places(node) == []
    await start(node, "p")
    assert places(node) == [("1g.5gb", 6)]
    edits = node.spec(name)
    assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={node.nvml.instances[GPU][0].uuid}"]


async def test_an_instance_in_use_goes_when_its_process_has_ended(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1),)
    await end(node, "p")
    assert places(node) == [("1g.5gb", 6)]
    assert node.instances.left == ("GPU 0 keeps 1g.5gb at 6: it is in use by process 7",)
    await admitted(node, "next", instance())
    for _ in range(2):
        with pytest.raises(NotYet, match=r"1g.5gb at 6 of GPU 0 is in use by process 7"):
            await start(node, "next")
    node.nvml.running.clear()
    await start(node, "next")
    assert node.nvml.instances[GPU] == (made,)


async def test_a_container_that_starts_again_has_its_instance_whatever_runs_in_it(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    [made] = node.nvml.instances[GPU]
    node.nvml.running[made.uuid] = (GpuProcess(7, 1),)
    await start(node, "p")
    assert node.nvml.instances[GPU] == (made,)


async def test_instances_of_pods_that_have_ended_do_not_block_the_next(node: Node) -> None:
    await admitted(node, "a", instance("1g.5gb", 0))
    await start(node, "a")
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "a", namespace="default")
    await admitted(node, "b", instance("2g.10gb", 0))
    await start(node, "b")
    assert places(node) == [("2g.10gb", 0)]
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "b", namespace="default")
    await admitted(node, "c", share_of(GPU))
    await start(node, "c")
    assert not on(node)


async def test_a_pod_of_the_same_name_with_the_same_device_is_not_blocked_by_the_one_before(node: Node) -> None:
    """As with a StatefulSet: kubelet's list has the name and the device of both pods."""
    old = await admitted(node, "p", instance())
    await start(node, "p")
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "p", namespace="default")
    new = await admitted(node, "p", instance())
    await start(node, "p")
    assert node.spec(old) is None
    assert node.spec(new) is not None
    assert places(node) == [("1g.5gb", 6)]


async def test_one_that_lamina_did_not_make_is_used_where_it_fits_and_never_destroyed(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    theirs = await node.nvml.create_mig(GPU, Placed("1g.5gb", 6))
    await admitted(node, "p", instance())
    node.nvml.running[theirs.uuid] = (GpuProcess(7, 1),)
    with pytest.raises(NotYet, match="in use by process 7"):
        await start(node, "p")
    node.nvml.running.clear()
    await start(node, "p")
    await end(node, "p")
    assert node.nvml.instances[GPU] == (theirs,)
    await admitted(node, "q", instance("2g.10gb", 4))
    await start(node, "q")
    await admitted(node, "r", instance("7g.40gb", 0))
    with pytest.raises(LaminaError, match=r"7g.40gb cannot begin at 0 of A100-40GB next to 1g.5gb at 6"):
        await start(node, "r")
    look(node)
    node.kubelet.listed.clear()
    await node.kube.delete(PODS, "q", namespace="default")
    await node.kube.delete(PODS, "r", namespace="default")
    await node.releaser.reconcile()
    await admitted(node, "s", share_of(GPU))
    with pytest.raises(NotYet, match=r"GPU 0 has 1g.5gb at 6, which Lamina did not make and must not destroy"):
        await start(node, "s")
    assert node.nvml.instances[GPU] == (theirs,)


def share_of(gpu: str) -> Share:
    return Share(gpu=gpu, memory_mib=1000)


async def test_an_idle_gpu_changes_its_mode_to_what_the_next_container_needs(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    look(node)
    await end(node, "a")
    name = await admitted(node, "b", share_of(GPU))
    await start(node, "b")
    assert not on(node)
    edits = node.spec(name)
    assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={GPU}"]
    look(node)
    await end(node, "b")
    await admitted(node, "c", instance())
    await start(node, "c")
    assert on(node) and places(node) == [("1g.5gb", 6)]


async def test_a_busy_gpu_never_changes_its_mode(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    await admitted(node, "b", share_of(GPU))
    with pytest.raises(NotYet, match=f"{GPU} is in mode mig as long as pod default/a uses it.*in mode quota"):
        await start(node, "b")
    await admitted(node, "c", share_of(FACTS[1].uuid))
    await start(node, "c")
    await admitted(node, "d", instance(gpu=FACTS[1].uuid))
    with pytest.raises(NotYet, match="in mode quota as long as pod default/c uses it"):
        await start(node, "d")
    assert on(node) and not on(node, FACTS[1].uuid)


async def test_a_gpu_with_processes_of_others_is_not_partitioned(node: Node) -> None:
    node.nvml.running[GPU] = (GpuProcess(7, 1),)
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match="cannot change the MIG mode of GPU 0 while it is in use by process 7"):
        await start(node, "p")
    assert not on(node)


@pytest.mark.parametrize("unknown", [False, True])
async def test_a_gpu_that_grants_may_not_partition_is_unchanged(node: Node, unknown: bool) -> None:
    node.partitionable = None if unknown else set()
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match="GPU 0 may not be partitioned for a grant"):
        await start(node, "p")
    assert not on(node)
    await node.nvml.set_mig_mode(GPU, True)
    look(node)
    await end(node, "p")
    await admitted(node, "q", share_of(GPU))
    with pytest.raises(NotYet, match="GPU 0 is partitioned by MIG and cannot be shared"):
        await start(node, "q")
    assert on(node)


async def test_two_pods_never_have_one_instance(node: Node) -> None:
    await admitted(node, "a", instance())
    await start(node, "a")
    await admitted(node, "b", instance())
    with pytest.raises(NotYet, match=r"1g.5gb at 6 of .* is in use by pod default/a"):
        await start(node, "b")


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ((Share(gpu=GPU, memory_mib=1, mode=Mode.MIG),), "does not say which"),
        ((instance(), share_of(FACTS[1].uuid)), "mixes MIG instances with other shares"),
        ((instance("1g.6gb", 0),), "has no MIG profile 1g.6gb"),
        ((instance("2g.10gb", 3),), "cannot begin at 3"),
    ],
)
async def test_a_grant_that_no_card_can_serve_is_refused(node: Node, shares: tuple[Share, ...], reason: str) -> None:
    await admitted(node, "p", *shares)
    with pytest.raises(LaminaError, match=reason):
        await start(node, "p", len(shares))
    assert places(node) == []


async def test_when_the_configuration_wants_no_mig_any_more_the_idle_gpu_is_as_before(node: Node) -> None:
    await admitted(node, "p", instance())
    await start(node, "p")
    node.partitionable = set()
    await node.on_demand.reconcile()
    assert on(node) and places(node) == [("1g.5gb", 6)]
    await end(node, "p")
    assert not on(node) and places(node) == []
    assert node.made.gpus == frozenset()


async def test_a_mode_that_another_program_turned_on_stays(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    await admitted(node, "p", instance())
    await start(node, "p")
    node.partitionable = set()
    await end(node, "p")
    assert on(node) and places(node) == []


async def test_a_silent_driver_is_waited_for(node: Node) -> None:
    await admitted(node, "p", instance())
    node.nvml.broken = "Driver Not Loaded"
    with pytest.raises(LaminaError, match="Driver Not Loaded"):
        await start(node, "p")
    node.nvml.broken = ""
    await start(node, "p")
    node.nvml.broken = "Driver Not Loaded"
    with pytest.raises(LaminaError, match="Driver Not Loaded"):
        await end(node, "p")
    node.nvml.broken = ""
    await node.on_demand.reconcile()
    assert places(node) == []


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_while_it_makes_an_instance_comes_to_the_same_end(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = partitioned_node(tmp_path / str(at))
        name = await admitted(node, "p", instance(), instance("2g.10gb", 0))
        died = await node.dies(Life(2 * at, torn=torn), lambda node=node: start(node, "p", 2))  # type: ignore[misc]
        await start(node, "p", 2)
        assert places(node) == [("1g.5gb", 6), ("2g.10gb", 0)], at
        edits = node.spec(name)
        uuids = [each.uuid for each in sorted(node.nvml.instances[GPU], key=lambda each: each.start)]
        assert edits is not None and edits["env"] == [f"NVIDIA_VISIBLE_DEVICES={','.join(uuids)}"], at
        assert all(uuids)
        await end(node, "p")
        node.partitionable = set()
        await node.on_demand.reconcile()
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        if not died:
            assert at > 7
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_before_its_pod_comes_again_leaves_nothing(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = partitioned_node(tmp_path / str(at))
        await admitted(node, "p", instance())
        died = await node.dies(Life(2 * at, torn=torn), lambda node=node: start(node, "p"))  # type: ignore[misc]
        node.partitionable = set()
        await end(node, "p")
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        assert all(allocation.bound is None for allocation in node.record.allocations)
        if not died:
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_while_it_takes_away_comes_to_the_same_end(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = partitioned_node(tmp_path / str(at))
        await node.nvml.set_mig_mode(FACTS[1].uuid, True)
        theirs = await node.nvml.create_mig(FACTS[1].uuid, Placed("1g.5gb", 0))
        await admitted(node, "p", instance(), instance("2g.10gb", 0), instance("1g.5gb", 1, gpu=FACTS[1].uuid))
        await start(node, "p", 3)
        node.partitionable = set()
        died = await node.dies(Life(2 * at, torn=torn), lambda node=node: end(node, "p"))  # type: ignore[misc]
        await node.releaser.reconcile()
        await node.on_demand.reconcile()
        assert (places(node), on(node), node.made.gpus) == ([], False, frozenset()), at
        assert node.nvml.instances[FACTS[1].uuid] == (theirs,)
        if not died:
            assert at > 8
            return


async def test_an_incomplete_instance_of_another_program_stays(node: Node) -> None:
    await node.nvml.set_mig_mode(GPU, True)
    made = await node.nvml.create_mig(GPU, Placed("1g.5gb", 6))
    node.nvml.instances[GPU] = (made._replace(uuid=""),)
    await admitted(node, "p", instance())
    with pytest.raises(NotYet, match=r"1g.5gb at 6 of GPU 0 has no compute instance, and Lamina did not make it"):
        await start(node, "p")
    assert places(node) == [("1g.5gb", 6)]
