"""Events about containers that were refused GPU memory: with numbers, and never more than one in five minutes."""

from pathlib import Path

import pytest

from lamina.agent.limits.memory_refusals import QUIET_S, RefusalEvents
from lamina.core.quantities import MIB
from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.ports.kube import EVENTS
from tests.agent.node import GPU, Node, container, share


class Refusing:
    """A container with a share of 4096 MiB whose usage file says what a test wants."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.usage = folder / "usage"
        self.events = RefusalEvents(node.context)

    def counts(self, refusals: int, peak: int = 4000 * MIB) -> None:
        data = bytearray(self.usage.read_bytes())
        head = layout.UsageFile.from_buffer(data)
        head.devices[0].refusals, head.devices[0].peak = refusals, peak
        del head
        self.usage.write_bytes(bytes(data))

    async def reconcile(self, later_s: float = 0.0) -> list[str]:
        """The messages of all events until then."""
        await self.node.clock.advance(later_s)
        await self.events.reconcile()
        return [event["message"] for event in (await self.node.kube.list(EVENTS)).items]


@pytest.fixture
async def refusing(tmp_path: Path) -> Refusing:
    node = Node(tmp_path)
    uid = await node.pod("p", container("main", share(0, 4096)))
    await node.admit("p", {"main": ["ticket-0"]})
    await node.preparer.prepare(["ticket-0"])
    folder = node.places.containers / f"{uid}_main"
    write_container(folder, Limits(devices=(DeviceLimit(uuid=GPU[0], memory_bytes=4096 * MIB),)))
    return Refusing(node, folder)


async def test_a_refusal_is_an_event_with_limit_and_peak(refusing: Refusing) -> None:
    assert await refusing.reconcile() == []
    refusing.counts(1)
    assert await refusing.reconcile(10) == [
        "container main: an allocation of GPU memory was refused: its limit is 4096 MiB, and at most 4000 MiB were in "
        "use"
    ]
    [event] = (await refusing.node.kube.list(EVENTS)).items
    assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("OutOfGpuMemory", "Warning", "p")
    assert await refusing.reconcile(QUIET_S) == [event["message"]]


async def test_more_refusals_wait_and_are_counted_together(refusing: Refusing) -> None:
    await refusing.reconcile()
    for count in range(1, 20):
        refusing.counts(count)
        assert len(await refusing.reconcile(QUIET_S / 20)) == 1
    refusing.counts(30)
    messages = await refusing.reconcile(QUIET_S)
    assert len(messages) == 2 and any("29 allocations of GPU memory were refused" in each for each in messages)


async def test_refusals_from_before_the_agent_started_are_not_repeated(refusing: Refusing) -> None:
    refusing.counts(7)
    assert await refusing.reconcile() == []
    refusing.counts(8)
    assert len(await refusing.reconcile(10)) == 1


async def test_a_container_that_starts_again_is_reported_again(refusing: Refusing) -> None:
    refusing.counts(7)
    await refusing.reconcile()
    refusing.counts(1)
    [message] = await refusing.reconcile(10)
    assert "an allocation of GPU memory was refused" in message


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(100_000)])
async def test_what_a_tenant_writes_is_no_event_and_stops_nothing(refusing: Refusing, content: bytes) -> None:
    await refusing.reconcile()
    refusing.usage.write_bytes(content)
    assert await refusing.reconcile(10) == []


async def test_a_peak_beyond_the_limit_is_not_repeated(refusing: Refusing) -> None:
    await refusing.reconcile()
    refusing.counts(2**64 - 1, peak=2**64 - 1)
    [message] = await refusing.reconcile(10)
    assert message.endswith("its limit is 4096 MiB, and at most 4096 MiB were in use")
