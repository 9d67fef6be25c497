"""Controller and agent together: the shares of a pod that is deleted by force are not free while its processes run."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from lamina.ports.kube import PODS, Object
from tests.enforcement.slots import locked_slot
from tests.whole_node.recovery import everything_comes_to_rest, settle
from tests.whole_node.world import POLL_S, World


async def runs(world: World, kind: str) -> Object:
    """A pod that runs, also by its status."""
    name = await world.a_pod_comes(kind)
    await settle(world, 1)
    return await tell(world, name, {"running": {}})


async def tell(world: World, name: str, state: Object) -> Object:
    status = {"phase": "Running", "containerStatuses": [{"name": "c0", "state": state}]}
    return await world.kube.patch(PODS, name, {"status": status}, namespace="default", subresource="status")


def usage_of(world: World, pod: Object) -> Path:
    (container,) = world.kubelet.pods[pod["metadata"]["uid"]].containers
    assert container.running is not None
    return Path(container.running.mounts["/run/lamina/usage"])


@pytest.mark.parametrize("restarted", ["", "agent", "controller", "both"])
async def test_a_share_is_free_once_the_processes_of_a_deleted_pod_have_ended(world: World, restarted: str) -> None:
    first, second = await runs(world, "over two"), await runs(world, "over two")
    with ExitStack() as processes:
        processes.enter_context(locked_slot(usage_of(world, first)))
        await world.kube.delete(PODS, first["metadata"]["name"], namespace="default")
        world.kubelet.drop(first["metadata"]["uid"])
        await world.time_passes(POLL_S)
        if restarted in ("agent", "both"):
            await world.agent_dies()
            await world.agent_starts()
        if restarted in ("controller", "both"):
            await world.control_starts()
        third = await world.a_pod_comes("over two")
        await settle(world, 4)
        assert await node_of(world, third) == ""
    await settle(world, 2)
    assert await node_of(world, third) != ""
    await tell(world, second["metadata"]["name"], {"terminated": {"exitCode": 0}})
    await everything_comes_to_rest(world)


async def node_of(world: World, name: str) -> str:
    return str((await world.kube.get(PODS, name, namespace="default"))["spec"].get("nodeName", ""))
