"""The ResourceSlices that an agent keeps in Kubernetes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.dra.names import DRIVER
from lamina.ports.kube import RESOURCE_SLICES, Object
from tests.agent.claim_nodes import ClaimNode, result
from tests.waiting import canceled, until


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[ClaimNode]:
    node = ClaimNode(tmp_path)
    await node.joined()
    task = asyncio.create_task(node.watch.run())
    await until(lambda: node.watch.published is not None, task=task)
    yield node
    await canceled(task)


async def slices(node: ClaimNode) -> list[Object]:
    return (await node.kube.list(RESOURCE_SLICES)).items


async def published(node: ClaimNode) -> tuple[int, list[str]]:
    """The generation and the devices of the only slice, after the agent has looked."""
    await node.publisher.reconcile()
    (found,) = await slices(node)
    return found["spec"]["pool"]["generation"], [device["name"] for device in found["spec"]["devices"]]


async def test_slices_follow_what_is_offered_and_are_written_only_then(node: ClaimNode) -> None:
    assert await published(node) == (1, ["gpu-3", "gpu-2", "gpu-1", "gpu-0"])
    (first,) = await slices(node)
    assert first["metadata"]["ownerReferences"][0]["name"] == node.name
    assert await published(node) == (1, ["gpu-3", "gpu-2", "gpu-1", "gpu-0"])
    assert (await slices(node))[0] == first
    await node.prepared("c", result(device="gpu-0", memory="1Gi"))
    assert await published(node) == (2, ["gpu-0", "gpu-3", "gpu-2", "gpu-1"])
    node.observe(gpu1="the driver reported XID 79")
    assert (await published(node))[0] == 3
    (tainted,) = await slices(node)
    assert ["taints" in device for device in tainted["spec"]["devices"]] == [False, False, False, True]
    node.observe()
    assert await published(node) == (4, ["gpu-0", "gpu-3", "gpu-2", "gpu-1"])


async def test_a_slice_that_was_deleted_is_written_again(node: ClaimNode) -> None:
    await published(node)
    (first,) = await slices(node)
    await node.kube.delete(RESOURCE_SLICES, first["metadata"]["name"])
    await until(lambda: not node.watch.published)
    assert (await published(node))[1] == ["gpu-3", "gpu-2", "gpu-1", "gpu-0"]


async def test_slices_of_another_program_under_the_drivers_name_are_replaced(node: ClaimNode) -> None:
    pool = {"name": node.name, "generation": 7, "resourceSliceCount": 1}
    for name, driver in (("theirs", DRIVER), ("nic", "nic.example.com")):
        spec = {"driver": driver, "nodeName": node.name, "pool": pool, "devices": [{"name": "gpu-0"}]}
        await node.kube.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    await until(lambda: bool(node.watch.published))
    await node.publisher.reconcile()
    found = {each["metadata"]["name"]: each["spec"] for each in await slices(node)}
    assert sorted(found) == ["nic", "node-1-gpu.nvidia.com-0"]
    assert found["node-1-gpu.nvidia.com-0"]["pool"]["generation"] == 8


async def test_nothing_is_written_while_nvml_does_not_answer(node: ClaimNode) -> None:
    node.nvml.broken = "Driver Not Loaded"
    await node.publisher.reconcile()
    assert await slices(node) == []
    node.nvml.broken = ""
    assert (await published(node))[0] == 1
