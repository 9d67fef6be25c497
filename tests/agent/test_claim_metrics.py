"""What the agent tells of the requests of claims: limits, use and refusals, and events about these."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lamina.agent.containers.paths import write_limits
from lamina.agent.limits.memory_refusals import QUIET_S, RefusalEvents
from lamina.agent.metrics.server import MetricsPage
from lamina.core.quantities import MIB
from lamina.enforcement import layout
from lamina.ports.host import FakeHost
from lamina.ports.kube import EVENTS
from lamina.ports.nvml import GpuReading
from tests.agent.claim_nodes import ClaimNode, result
from tests.agent.node import GPU


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    made = ClaimNode(tmp_path)
    made.claims = made.claim_preparer(write_limits)
    return made


async def series(node: ClaimNode, claim: str) -> dict[str, float]:
    """The values about a claim by name, and kind of memory if there is one."""
    page = (await MetricsPage(node.context, node.offers, FakeHost()).text()).decode()
    return {
        sample.name + (f" {sample.labels['kind']}" if "kind" in sample.labels else ""): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("claim") == claim
    }


def refuse(node: ClaimNode, claim: str, refusals: int, peak_mib: int) -> None:
    """Programs of the claim were refused memory."""
    usage = node.places.containers / f"uid-of-{claim}_gpu" / "usage"
    data = bytearray(usage.read_bytes())
    head = layout.UsageFile.from_buffer(data)
    head.devices[0].refusals, head.devices[0].peak = refusals, peak_mib * MIB
    del head
    usage.write_bytes(bytes(data))


async def test_a_share_of_a_claim_has_series_of_its_own(node: ClaimNode) -> None:
    await node.prepared("c", result(memory="4Gi", cores=30))
    refuse(node, "c", 2, 4000)
    found = await series(node, "c")
    assert found["lamina_claim_memory_limit_bytes"] == 4096 * MIB
    assert found["lamina_claim_memory_used_bytes data"] == 0
    assert found["lamina_claim_memory_peak_bytes"] == 4000 * MIB
    assert found["lamina_claim_memory_refusals_total"] == 2
    assert found["lamina_claim_cores_percent"] == 30
    assert not any(name.startswith("lamina_container") for name in found)
    await node.unprepare("c")
    assert await series(node, "c") == {}


async def test_a_whole_gpu_of_a_claim_has_what_the_driver_says(node: ClaimNode) -> None:
    await node.prepared("c", result())
    node.nvml.read[GPU[0]] = GpuReading(used_bytes=500, free_bytes=1500, busy_percent=40)
    found = await series(node, "c")
    assert (found["lamina_claim_memory_limit_bytes"], found["lamina_claim_memory_used_bytes data"]) == (2000, 500)
    assert found["lamina_claim_utilization_percent"] == 40


async def test_access_without_a_share_has_no_series(node: ClaimNode) -> None:
    await node.prepared("c", result(adminAccess=True))
    assert await series(node, "c") == {}


async def test_refused_memory_is_an_event_of_the_claim(node: ClaimNode) -> None:
    await node.prepared("c", result(memory="4Gi"))
    events = RefusalEvents(node.context)
    await events.reconcile()
    refuse(node, "c", 1, 4000)
    await node.clock.advance(QUIET_S)
    await events.reconcile()
    (event,) = (await node.kube.list(EVENTS)).items
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("ResourceClaim", "c")
    assert event["message"].startswith("request gpu: an allocation of GPU memory was refused: its limit is 4096 MiB")
