"""Processes that ask learn what they use by the driver's figures, whatever their container and others write."""

import asyncio
import ctypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lamina.agent.containers.paths import folder_name
from lamina.agent.limits.arbitration import LATE_S, ArbitrationLoop
from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.ports.host import ProcessIdentity
from lamina.ports.nvml import GpuProcess
from tests.agent.node import GPU, Node
from tests.waiting import canceled

MIB = 1 << 20
MIG = "MIG-00000000-0000-4000-8000-000000000001"
BEGUN = 5120


class Box:
    """A container's files, as the agent writes and its processes change them."""

    def __init__(self, node: Node, uid: str, name: str = "main", gpus: tuple[str, ...] = (GPU[0],)) -> None:
        self.node, self.uid = node, uid
        self.folder = node.places.containers / folder_name(uid, name)
        self.folder.mkdir(parents=True)
        self.gpus = gpus
        write_container(self.folder, Limits(devices=tuple(DeviceLimit(uuid=gpu, memory_bytes=1 << 30) for gpu in gpus)))

    def claims(self, slot: int, pid: int, start: int = BEGUN) -> None:
        """A process takes a slot."""
        owner = pid | start << layout.PID_BITS | 1 << 48
        self._write(ctypes.sizeof(layout.UsageFile) + slot * layout.slot_stride(len(self.gpus)), owner)
        self._write(layout.UsageFile.slots_used.offset, slot + 1, 4)

    def asks(self, requests: int) -> None:
        self._write(layout.UsageFile.figure_requests.offset, requests)

    def _write(self, offset: int, value: int, size: int = 8) -> None:
        with (self.folder / "usage").open("r+b") as file:
            file.seek(offset)
            file.write(value.to_bytes(size, "little"))

    def runs(self, host_pid: int, pid: int, used: int | None, *, start: int = BEGUN, gpu: str = GPU[0]) -> None:
        """A process of its pod that the driver lists."""
        self.node.host.cgroups[host_pid] = f"0::/kubepods/besteffort/pod{self.uid}/4f3c\n"
        self.node.host.identities[host_pid] = ProcessIdentity(pid, start)
        running = self.node.nvml.running
        running[gpu] = (*running.get(gpu, ()), GpuProcess(host_pid, used))

    @property
    def arbiter(self) -> layout.ArbiterFile:
        return layout.ArbiterFile.from_buffer_copy((self.folder / "arbiter").read_bytes())

    def figure(self, slot: int = 0, device: int = 0) -> int | None:
        """What the process in the slot is answered, in bytes; None before the first answer."""
        word = self.arbiter.figures[device].slots[slot]
        return (word & 0xFFFFFFFF) * 1024 if word else None


@asynccontextmanager
async def answering(node: Node, seconds: float = 0.2) -> AsyncIterator[None]:
    """With the agent's loop, after so many seconds."""
    loop = ArbitrationLoop(
        node.context,
        node.host,
        lambda folder, uuid: None,
        lambda gpu: 0,
        lambda folder, problem: None,
        lambda pods: None,
    )
    task = asyncio.create_task(loop.run())
    try:
        await node.clock.advance(seconds)
        yield
    finally:
        await canceled(task)


async def test_each_process_that_asks_gets_its_own_figure(node: Node) -> None:
    one, two = Box(node, "uid-1"), Box(node, "uid-2")
    for box, base in ((one, 1000), (two, 2000)):
        for slot in range(3):
            box.claims(slot, pid=7 + slot)
            box.runs(base + slot, 7 + slot, (base + slot) * MIB)
        box.asks(3)
    async with answering(node):
        assert [one.figure(slot) for slot in range(4)] == [1000 * MIB, 1001 * MIB, 1002 * MIB, None]
        assert [two.figure(slot) for slot in range(4)] == [2000 * MIB, 2001 * MIB, 2002 * MIB, None]


async def test_an_answer_has_the_time_at_which_the_driver_was_asked(node: Node) -> None:
    box = Box(node, "uid-1")
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB)
    async with answering(node):
        before = int(node.clock.monotonic() * 1000)
        box.asks(1)
        await node.clock.advance(0.1)
        answered = box.arbiter.figures[0].slots[0] >> 32
        assert before <= answered <= int(node.clock.monotonic() * 1000)
        await node.clock.advance(5)
        assert box.arbiter.figures[0].slots[0] >> 32 == answered, "no one has asked again"
        box.asks(2)
        await node.clock.advance(0.1)
        assert box.arbiter.figures[0].slots[0] >> 32 > answered


async def test_the_driver_is_not_asked_without_need_and_seldom_by_one_that_asks_always(node: Node) -> None:
    box, asked = Box(node, "uid-1"), []
    processes = node.nvml.processes

    async def counted(uuid: str) -> tuple[GpuProcess, ...]:
        asked.append(uuid)
        return await processes(uuid)

    node.nvml.processes = counted  # type: ignore[method-assign]
    async with answering(node, 2):
        assert asked == []
        for requests in range(1, 1001):
            box.asks(requests)
            await node.clock.advance(0.001)
        assert 1 < len(asked) <= 50


async def test_a_container_that_has_ended_asks_for_no_other(node: Node) -> None:
    box = Box(node, "uid-1")
    box.asks(1)
    async with answering(node, 1):
        again = Box(node, "uid-2")
        again.claims(0, pid=7)
        again.runs(90417, 7, 303 * MIB)
        again.asks(1)
        await node.clock.advance(1)
        assert again.figure() == 303 * MIB


@pytest.mark.parametrize("listed", [True, False], ids=["no memory", "not listed"])
async def test_what_the_driver_does_not_say_is_unknown(node: Node, listed: bool) -> None:
    box = Box(node, "uid-1")
    box.claims(0, pid=7)
    if listed:
        box.runs(90417, 7, None)
    box.asks(1)
    async with answering(node):
        assert box.figure() == 0


async def test_a_pid_of_a_later_process_is_not_taken_for_the_one_that_ended(node: Node) -> None:
    box = Box(node, "uid-1")
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB, start=BEGUN + 1)
    box.asks(1)
    async with answering(node):
        assert box.figure() == 0


async def test_a_process_that_ends_while_the_driver_is_asked_is_unknown(node: Node) -> None:
    box = Box(node, "uid-1")
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB)
    del node.host.identities[90417], node.host.cgroups[90417]
    box.asks(1)
    async with answering(node):
        assert box.figure() == 0


async def test_a_forged_claim_gets_nothing_of_another_pod_and_takes_nothing_from_it(node: Node) -> None:
    victim, liar = Box(node, "uid-1"), Box(node, "uid-2")
    victim.claims(0, pid=7)
    victim.runs(90417, 7, 303 * MIB)
    for slot, pid in enumerate((7, 90417)):
        liar.claims(slot, pid=pid)
    victim.asks(1)
    liar.asks(1)
    async with answering(node):
        assert victim.figure() == 303 * MIB
        assert [liar.figure(slot) for slot in (0, 1)] == [0, 0]


async def test_claims_of_one_process_all_get_its_whole_figure(node: Node) -> None:
    """So no claim makes a context cheaper than the driver says."""
    box = Box(node, "uid-1")
    for slot in (0, 1):
        box.claims(slot, pid=7)
    box.runs(90417, 7, 303 * MIB)
    box.asks(1)
    async with answering(node):
        assert [box.figure(slot) for slot in (0, 1)] == [303 * MIB] * 2


async def test_gpus_and_partitions_are_asked_one_by_one(node: Node) -> None:
    box = Box(node, "uid-1", gpus=(GPU[1], MIG))
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB, gpu=GPU[1])
    box.runs(90417, 7, 120 * MIB, gpu=MIG)
    box.asks(1)
    async with answering(node):
        assert [box.figure(device=device) for device in (0, 1)] == [303 * MIB, 120 * MIB]


async def test_a_driver_that_fails_is_unknown_and_asked_again(node: Node) -> None:
    box = Box(node, "uid-1")
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB)
    box.asks(1)
    node.nvml.broken = "NVML does not answer"
    async with answering(node):
        assert box.figure() == 0
        node.nvml.broken = ""
        box.asks(2)
        await node.clock.advance(0.2)
        assert box.figure() == 303 * MIB


async def test_a_defect_behind_the_host_is_set_aside_and_the_next_question_answered(node: Node) -> None:
    box, known = Box(node, "uid-1"), node.host.process_identity
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB)

    def fail(pid: int) -> ProcessIdentity | None:
        raise RuntimeError("planted")

    node.host.process_identity = fail  # type: ignore[method-assign]
    box.asks(1)
    async with answering(node):
        assert box.figure() == 0
        assert node.context.aside.counts["processes on a GPU"] == 1
        node.host.process_identity = known  # type: ignore[method-assign]
        box.asks(2)
        await node.clock.advance(0.2)
        assert box.figure() == 303 * MIB


async def test_while_the_driver_hangs_no_process_waits(node: Node) -> None:
    box, hanging = Box(node, "uid-1"), asyncio.Event()
    processes = node.nvml.processes

    async def hang(uuid: str) -> tuple[GpuProcess, ...]:
        await hanging.wait()
        return await processes(uuid)

    node.nvml.processes = hang  # type: ignore[method-assign]
    box.claims(0, pid=7)
    box.runs(90417, 7, 303 * MIB)
    async with answering(node):
        box.asks(1)
        await node.clock.advance(10)
        assert box.arbiter.figures_at < (node.clock.monotonic() - 10 + LATE_S + 0.1) * 1e9
        hanging.set()
        await node.clock.advance(0.2)
        assert box.figure() == 303 * MIB
        assert box.arbiter.figures_at > (node.clock.monotonic() - 0.1) * 1e9
