"""Claims that are prepared before their pods are bound: conditions, another node, and nothing left behind."""

from pathlib import Path
from typing import Any

import pytest

from lamina.agent.resource_claims.binding import PATIENCE_S, ClaimBinding
from lamina.dra.conditions import CANNOT_PREPARE, PREPARED, with_conditions
from lamina.ports.kube import RESOURCE_CLAIMS, Object
from tests.agent.claim_nodes import ClaimNode, result


class BindingNode(ClaimNode):
    """Its slices name the conditions."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, dra_binding=True)
        self.binding = ClaimBinding(self.context, self.claims)

    async def allocated(self, name: str, *results: Object, **more: Any) -> None:
        """A claim for which the scheduler waits, and which the agent has seen."""
        await self.claim(name, *(self.awaited(each) for each in results), **more)
        await self.saw(name)

    def awaited(self, wanted: Object) -> Object:
        named = with_conditions({})
        return {**wanted, **{key: named[key] for key in ("bindingConditions", "bindingFailureConditions")}}

    async def saw(self, name: str, *, gone: bool = False) -> None:
        self.binding.observe(await self.found(name), gone=gone)

    async def found(self, name: str) -> Object:
        return await self.kube.get(RESOURCE_CLAIMS, name, namespace="default")

    async def conditions(self, name: str) -> dict[str, str]:
        """The reported conditions of all devices, with their messages."""
        devices = (await self.found(name))["status"].get("devices") or ()
        return {each["type"]: each["message"] for device in devices for each in device["conditions"]}

    async def deallocated(self, name: str) -> None:
        """The scheduler tries another node."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self.kube.patch(RESOURCE_CLAIMS, name, {"status": status}, namespace="default", subresource="status")
        await self.saw(name)
        await self.binding.reconcile()


@pytest.fixture
def node(tmp_path: Path) -> BindingNode:
    return BindingNode(tmp_path)


SHARE = result(memory="4Gi")


async def test_a_claim_is_prepared_before_kubelet_asks(node: BindingNode) -> None:
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    assert list(await node.conditions("c")) == [PREPARED]
    assert node.limits_of("c") == "gpu:0:4096"
    before = node.disk()
    await node.prepare("c")
    assert {path: text for path, text in node.disk().items() if "record.json" not in path} == {
        path: text for path, text in before.items() if "record.json" not in path
    }
    await node.unprepare("c")
    assert node.left() == []


async def test_what_may_pass_is_tried_again_and_then_reported(node: BindingNode) -> None:
    await node.prepared("old", result(memory="30Gi"))
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    assert await node.conditions("c") == {}
    await node.clock.advance(PATIENCE_S)
    await node.binding.reconcile()
    reported = await node.conditions("c")
    assert list(reported) == [CANNOT_PREPARE]
    assert "has no room for the claim as long as it is prepared for default/old" in reported[CANNOT_PREPARE]


async def test_a_claim_that_waited_is_prepared_once_there_is_room(node: BindingNode) -> None:
    await node.prepared("old", result(memory="30Gi"))
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    await node.unprepare("old")
    await node.clock.advance(PATIENCE_S - 1)
    await node.binding.reconcile()
    assert list(await node.conditions("c")) == [PREPARED]


async def test_what_is_impossible_is_reported_at_once(node: BindingNode) -> None:
    odd = {"opaque": {"driver": "gpu.nvidia.com", "parameters": {"kind": "Odd"}}, "source": "FromClaim"}
    await node.allocated("c", SHARE, config=[odd])
    await node.binding.reconcile()
    assert list(await node.conditions("c")) == [CANNOT_PREPARE]
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_a_failure_leaves_nothing_and_the_scheduler_may_come_back(node: BindingNode) -> None:
    node.nvml.broken = "Driver Not Loaded"
    await node.allocated("c", SHARE)
    await node.clock.advance(PATIENCE_S)
    await node.binding.reconcile()
    assert list(await node.conditions("c")) == [CANNOT_PREPARE]
    assert (node.left(), node.context.record.claims) == ([], {})
    node.nvml.broken = ""
    await node.deallocated("c")
    status = {"allocation": {"devices": {"results": [node.awaited(SHARE)]}}}
    await node.kube.patch(RESOURCE_CLAIMS, "c", {"status": status}, namespace="default", subresource="status")
    await node.saw("c")
    await node.binding.reconcile()
    assert list(await node.conditions("c")) == [PREPARED]


async def test_a_claim_that_goes_to_another_node_is_released(node: BindingNode) -> None:
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    assert node.left() != []
    await node.deallocated("c")
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_a_claim_for_which_kubelet_has_asked_is_not_released(node: BindingNode) -> None:
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    await node.prepare("c")
    node.start()
    node.binding = ClaimBinding(node.context, node.claims)
    await node.saw("c", gone=True)
    await node.binding.reconcile()
    assert node.limits_of("c") == "gpu:0:4096"


async def test_a_restarted_agent_releases_a_claim_for_which_kubelet_has_not_asked(node: BindingNode) -> None:
    await node.allocated("c", SHARE)
    await node.binding.reconcile()
    node.start()
    node.binding = ClaimBinding(node.context, node.claims)
    await node.deallocated("c")
    assert (node.left(), node.context.record.claims) == ([], {})


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_claims_of_one_container_are_released_together(node: BindingNode, order: tuple[str, str]) -> None:
    """Their limits are one file, so one of them goes after the other."""
    await node.using_pod("p", [{"name": "a"}, {"name": "b"}], claims=("a", "b"))
    for name, device in (("a", "gpu-0"), ("b", "gpu-1")):
        await node.claim(name, node.awaited(result(device=device, memory="4Gi")), pods=["p"])
    for name in order:
        await node.saw(name)
    await node.binding.reconcile()
    assert [list(await node.conditions(name)) for name in order] == [[PREPARED], [PREPARED]]
    for name in order:
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await node.kube.patch(RESOURCE_CLAIMS, name, {"status": status}, namespace="default", subresource="status")
        await node.saw(name)
    for _ in range(2):
        await node.binding.reconcile()
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_claims_without_conditions_are_left_to_kubelet(node: BindingNode) -> None:
    await node.claim("c", SHARE)
    await node.saw("c")
    await node.binding.reconcile()
    assert node.left() == []
