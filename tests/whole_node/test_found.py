"""Courses of events that the model has found, each as it was."""

import pytest

from lamina.agent.mps.clients import PIPE
from tests.whole_node import kinds
from tests.whole_node.invariants import check
from tests.whole_node.recovery import everything_comes_to_rest, settle
from tests.whole_node.world import POLL_S, World


async def set_up(world: World, *, policy: str = "default", file: str = "") -> None:
    await world.configure(policy)
    await world.label(kinds.FILE_LABEL, file)
    await world.time_passes(2 * POLL_S)


@pytest.mark.parametrize(("policy", "file", "kind"), [("single", "renamed", "a replica"), ("default", "", "small")])
async def test_no_container_starts_on_a_gpu_that_was_partitioned_since_the_last_read(
    world: World, policy: str, file: str, kind: str
) -> None:
    await set_up(world, policy=policy, file=file)
    await world.a_pod_comes(kind)
    await world.label(kinds.MIG_LABEL, "all-3g.20gb")
    await world.agent_dies()
    await world.agent_starts()
    await world.schedule()
    await world.kubelet_works()
    await check(world)
    (reason,) = [each.reason for _, each in world.kubelet.containers]
    assert "is partitioned by MIG and cannot be shared" in reason
    await everything_comes_to_rest(world)


async def replaced(world: World, file: str, pods: int) -> None:
    """Pods run by a file with replicas; the node allocates whole GPUs then, and these pods end."""
    await set_up(world, file=file)
    for _ in range(pods):
        await world.a_pod_comes("a GPU")
    await settle(world, 2)
    await world.label(kinds.FILE_LABEL, "whole")
    await world.time_passes(POLL_S)
    for number in range(pods):
        await world.delete(f"p{number + 1}")


@pytest.mark.parametrize("file", ["mps", "sliced"])
async def test_a_whole_gpu_goes_to_one_pod_though_kubelet_knows_replicas_from_before(world: World, file: str) -> None:
    await replaced(world, file, 5)
    for _ in range(3):
        await world.a_pod_comes("a GPU")
    await settle(world, 3)
    running = [each.running for _, each in world.kubelet.containers if each.running]
    seen = [each.env["NVIDIA_VISIBLE_DEVICES"] for each in running]
    assert seen and len(seen) == len(set(seen)), "a GPU that is allocated whole is in several pods"
    reasons = {each.reason for _, each in world.kubelet.containers if not each.running}
    assert all("is no longer shared" in reason for reason in reasons)
    await everything_comes_to_rest(world)


async def test_a_new_agent_knows_at_once_that_daemons_of_mps_are_there(world: World) -> None:
    await replaced(world, "mps", 2)
    await world.agent_dies()
    await world.agent_starts()
    for _ in range(2):
        await world.a_pod_comes("a GPU")
    await world.schedule()
    await world.kubelet_works()
    await check(world)
    assert {each.reason.partition("unhealthy: ")[2] for _, each in world.kubelet.containers} == {
        "it is in mode mps, and its daemon is starting"
    }
    await everything_comes_to_rest(world)


async def test_a_client_of_mps_starts_again_as_it_was_while_the_node_gives_out_whole_gpus(world: World) -> None:
    await set_up(world, file="mps")
    await world.a_pod_comes("a GPU")
    await settle(world, 2)
    await world.label(kinds.FILE_LABEL, "whole")
    await world.time_passes(3 * POLL_S)
    ((_, container),) = world.kubelet.containers
    container.running = None
    await world.kubelet_works()
    await check(world)
    assert container.running is not None and PIPE in container.running.env
    await everything_comes_to_rest(world)


async def test_a_gpu_is_partitioned_when_its_daemon_of_mps_has_ended(world: World) -> None:
    """Also when the pod that was its client has just ended."""
    await set_up(world, file="mps")
    name = await world.a_pod_comes("a GPU")
    await settle(world, 2)
    await world.label(kinds.MIG_LABEL, "all-3g.20gb")
    for step in range(30):
        await check(world)
        assert not world.mps.daemons.keys() & {each.uuid for each in world.nvml.present if each.mig_enabled}
        await world.time_passes(POLL_S)
        if step == 10:
            assert not all(each.mig_enabled for each in world.nvml.present), "the client's GPU waits"
            await world.delete(name)
            await world.kubelet_works()
    assert all(each.mig_enabled for each in world.nvml.present) and not world.mps.daemons
    await everything_comes_to_rest(world)


async def test_a_replica_of_the_same_name_by_another_resource_takes_nothing_from_its_holder(world: World) -> None:
    """`GPU-...::0` is a device of nvidia.com/gpu.shared and of nvidia.com/gpu."""
    await set_up(world, file="renamed")
    await world.a_pod_comes("a replica")
    await settle(world, 2)
    await world.label(kinds.FILE_LABEL, "sliced")
    await world.time_passes(3 * POLL_S)
    for _ in range(8):
        await world.a_pod_comes("a GPU")
    await settle(world, 2)
    ids = [ids[0] for _, each in world.kubelet.containers for ids in each.devices.values() if each.running]
    assert len(ids) > len(set(ids)), "the course is another one"
    await everything_comes_to_rest(world)


async def test_a_claim_whose_gpu_was_partitioned_before_it_was_prepared_says_so(world: World) -> None:
    """kube-scheduler allocated it from a slice of the moment before."""
    await set_up(world)
    name = await world.a_pod_comes("over two")
    await settle(world, 2)
    await world.reboot()
    await world.label(kinds.MIG_LABEL, "all-3g.20gb")
    await world.delete(name)
    claim = await world.door.comes("large claim")
    await world.schedule()
    await settle(world)
    assert claim.running is None and claim.reason.endswith("recreate the claim if it does not come back")
    await everything_comes_to_rest(world)
