"""The admission process as the controller keeps it: it learns what changes, gets answers, and is replaced."""

import asyncio
import contextlib
import os
import pickle
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from lamina.configuration import DEFAULT
from lamina.controller.admission.certificate_store import CertificateStore
from lamina.controller.admission.certificates import Certificate
from lamina.controller.admission.channel import Channel, open_channel
from lamina.controller.admission.messages import (
    Asked,
    Certified,
    Configured,
    Decided,
    Finish,
    FromProcess,
    Ping,
    Pong,
    Reviewed,
    ToProcess,
)
from lamina.controller.admission.process import (
    MOST_MISSED,
    MOST_MISSED_AT_START,
    PING_S,
    AdmissionProcess,
    AdmissionSources,
)
from lamina.controller.admission.review import Demand
from lamina.controller.capacity.node_states import Capacity
from lamina.controller.configuration import LiveConfiguration
from lamina.controller.metrics import Metrics
from lamina.ports.clock import FakeClock, SystemClock
from lamina.ports.kube.fake import FakeKube
from tests.controller.admission_worker import UNVERIFIED, review_of
from tests.controller.cluster import Running, admitted_pod, gpu_pod, running
from tests.waiting import until

DEMAND = Demand(native_devices=("nvidia.com/gpu",), only_native_reason="it is privileged")


class FakeChild:
    """A process of which the test plays the part."""

    def __init__(self, channel: Channel[Any], far: Channel[ToProcess]) -> None:
        self.channel, self.far = channel, far
        self.ended = False

    async def next(self, *, but: type = Ping) -> ToProcess | None:
        """The next message to it that is not of this type."""
        while isinstance(message := await self.far.receive(), but):
            pass
        return message

    async def end(self) -> None:
        self.ended = True
        self.channel.close()
        self.far.close()


class Keeper:
    """Keeps fake processes running."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.children: list[FakeChild] = []
        self.configuration = LiveConfiguration(DEFAULT, "")
        self.certificates = CertificateStore(FakeKube(), SystemClock(), [])
        self.certificates.serve(Certificate(b"", b"first", b"key"))
        capacity = Capacity(self.configuration)
        self.metrics = Metrics(capacity.ledger, capacity.set_aside)
        sources = AdmissionSources(self.configuration, self.certificates, self.refusal, self.metrics)
        self.process = AdmissionProcess(sources, self.clock, self.start)

    def refusal(self, demand: Demand) -> str:
        return f"no node offers {demand.native_devices[0]}"

    async def start(self, listener: socket.socket) -> FakeChild:
        ours, theirs = socket.socketpair()
        child = FakeChild(await open_channel(ours, FromProcess), await open_channel(theirs, ToProcess))
        self.children.append(child)
        return child

    async def child(self, number: int) -> FakeChild:
        """The process that is started after so many others."""
        await until(lambda: len(self.children) > number, clock=self.clock if number else None, step_s=PING_S)
        return self.children[number]


@pytest.fixture
async def keeper() -> AsyncIterator[Keeper]:
    made = Keeper()
    with socket.socket() as listener:
        task = asyncio.create_task(made.process.run(listener))
        yield made
        task.cancel()
        for child in made.children:
            child.far.close()
        await asyncio.wait((task,))
        assert all(child.ended for child in made.children)


async def test_a_process_gets_what_is_in_force_and_what_changes(keeper: Keeper) -> None:
    child = await keeper.child(0)
    received = await child.next()
    assert isinstance(received, Configured) and pickle.loads(received.config) == DEFAULT
    assert await child.next() == Certified(b"first", b"key")
    keeper.certificates.serve(Certificate(b"", b"second", b"key"))
    assert await child.next() == Certified(b"second", b"key")
    assert keeper.configuration.update("schedulerName: mine", "c") == ""
    received = await child.next()
    assert isinstance(received, Configured) and pickle.loads(received.config) == keeper.configuration.value != DEFAULT


async def test_its_questions_are_answered_and_its_reviews_counted(keeper: Keeper) -> None:
    child = await keeper.child(0)
    for allowed in (True, True, False):
        child.far.send(Reviewed(allowed, 0.001))
    child.far.send(Asked(7, DEMAND))
    assert await child.next(but=Ping | Configured | Certified) == Decided(7, "no node offers nvidia.com/gpu")
    for outcome, count in (("allowed", 2), ("refused", 1)):
        assert (
            keeper.metrics.registry.get_sample_value("lamina_decisions_total", {"verb": "admit", "outcome": outcome})
            == count
        )


@pytest.mark.parametrize("nonsense", [b"", b"nonsense\n", b'{"type":"Asked"}\n'])
async def test_one_that_ends_or_says_nonsense_is_replaced(keeper: Keeper, nonsense: bytes) -> None:
    child = await keeper.child(0)
    child.far._writer.write(nonsense)
    if not nonsense:
        child.far.close()
    second = await keeper.child(1)
    assert child.ended and not second.ended
    assert isinstance(await second.next(), Configured)


async def test_one_that_answers_no_pings_is_replaced(keeper: Keeper) -> None:
    child = await keeper.child(0)
    for _ in range(2):
        assert await child.next(but=Configured | Certified) == Ping()
        child.far.send(Pong())
        await keeper.clock.advance(PING_S)
    for _ in range(MOST_MISSED - 1):
        await keeper.clock.advance(PING_S)
        assert not child.ended
    await keeper.child(1)
    assert child.ended


async def test_one_that_starts_slowly_is_waited_for(keeper: Keeper) -> None:
    child = await keeper.child(0)
    for _ in range(MOST_MISSED_AT_START - 1):
        await keeper.clock.advance(PING_S)
    assert not child.ended and len(keeper.children) == 1
    await keeper.child(1)
    assert child.ended


async def test_at_the_end_it_may_finish() -> None:
    keeper = Keeper()
    with socket.socket() as listener:
        task = asyncio.create_task(keeper.process.run(listener))
        child = await keeper.child(0)
        task.cancel()
        assert await child.next(but=Ping | Configured | Certified) == Finish()
        child.far.send(Asked(1, DEMAND))
        assert await child.next() == Decided(1, "no node offers nvidia.com/gpu")
        assert not child.ended
        child.far.close()
        await asyncio.wait((task,))
        assert child.ended and task.cancelled()


def admission_processes() -> list[int]:
    """The admission processes that this process has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"lamina.controller.admission" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue  # it has ended
    return found


async def admits(cluster: Running) -> bool:
    body = review_of(gpu_pod(gpu=1))
    try:
        async with cluster.session.post(cluster.urls["admission"], data=body, ssl=UNVERIFIED) as response:
            return bool(msgspec.json.decode(await response.read())["response"]["allowed"])
    except aiohttp.ClientError:
        return False


async def test_admission_that_hangs_delays_nobody_and_one_that_dies_is_replaced(tmp_path: Path) -> None:
    async with running(FakeKube(), tmp_path) as cluster:
        await until(lambda: admits(cluster))
        (process,) = admission_processes()
        os.kill(process, signal.SIGSTOP)
        pod = await cluster.make(admitted_pod(gpu=1))
        assert (await cluster.scheduler.filter(pod, "node-0"))["nodenames"] == ["node-0"]
        assert await cluster.scheduler.bind(pod, "node-0") == ""
        with contextlib.suppress(ProcessLookupError):  # it may have been replaced as one that gives no answer
            os.kill(process, signal.SIGKILL)
        await until(lambda: admits(cluster))
        assert process not in admission_processes()
    assert admission_processes() == []
