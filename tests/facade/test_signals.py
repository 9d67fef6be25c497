"""What a neighbor's signal does to launches: they wait while it shows work, and no content of the file harms them."""

import ctypes
import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from lamina.enforcement import layout
from tests.enforcement.leases import lease
from tests.facade.arbitrated import ArbitratedMachine, decided, gains
from tests.waiting import wait_until

NAME = 7
WORKING = layout.SignalFile.working.offset


@pytest.fixture
def machine(tmp_path: Path, programs: dict[str, Path]) -> ArbitratedMachine:
    return ArbitratedMachine(tmp_path, programs["launching"])


def working(container: Path) -> int:
    return int(layout.SignalFile.from_buffer_copy((container / "signal").read_bytes()).working[0])


class Neighbor:
    """A container whose signal another one heeds, as the arbiter would decide; the test writes the signal."""

    def __init__(self, heeding: Path, signal: Path, *, device: int = 0, pause_us: int = 0) -> None:
        self._heeding, self._signal = heeding, signal
        os.link(signal, heeding / "neighbors" / str(NAME))
        self._word = NAME | device << layout.NEIGHBOR_BITS | pause_us << 32
        self.stopped = Event()

    def set(self, bits: int) -> None:
        with self._signal.open("r+b") as file:
            os.pwrite(file.fileno(), bits.to_bytes(4, "little"), WORKING)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        def decide() -> None:
            size = ctypes.sizeof(layout.ArbiterFile)
            with (self._heeding / "arbiter").open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
                arbiter = layout.ArbiterFile.from_buffer(mapped)
                arbiter.heeded[0].signals[0] = self._word
                arbiter.devices[0].watched = arbiter.devices[0].attention = 1
                while not self.stopped.wait(0.01):
                    arbiter.heartbeat = time.monotonic_ns()
                del arbiter

        thread = Thread(target=decide)
        thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            thread.join()


@pytest.fixture
def neighbor(machine: ArbitratedMachine) -> Neighbor:
    heeding, high = machine.container("low", cores=50, policy="cap"), machine.container("high", priority=0)
    return Neighbor(heeding, high / "signal")


def low(machine: ArbitratedMachine) -> Path:
    return machine.folder / "low"


def test_a_program_signals_work_until_it_has_waited_for_it(machine: ArbitratedMachine) -> None:
    one, other = machine.container("one", cores=50, policy="cap"), machine.container("other")
    with decided(one, other):
        assert working(one) == 0
        with machine.working(one):
            wait_until(lambda: working(one) != 0, "it does not signal work")
        wait_until(lambda: working(one) == 0, "the bit of a killed process stays")
        command = [str(machine.program), "linked", "plain", "1000000", "30"]
        subprocess.run(command, env=machine.variables(one), check=True, stdout=subprocess.DEVNULL)
        assert working(one) == 0


@pytest.mark.parametrize("bits", [1, 1 << 31, (1 << 32) - 1])
def test_launches_wait_while_a_neighbor_signals_work(machine: ArbitratedMachine, neighbor: Neighbor, bits: int) -> None:
    with neighbor.heeded(), machine.working(low(machine)):
        wait_until(lambda: gains(low(machine), 0.1) > 20, "it does not work")
        neighbor.set(bits)
        wait_until(lambda: gains(low(machine), 0.1) == 0, "it does not stop")
        neighbor.set(0)
        wait_until(lambda: gains(low(machine), 0.1) > 20, "it does not go on")


def test_no_launch_waits_for_a_signal_longer_than_its_arbiter_decides(
    machine: ArbitratedMachine, neighbor: Neighbor
) -> None:
    with machine.working(low(machine)):
        with neighbor.heeded():
            neighbor.set(1)
            wait_until(lambda: gains(low(machine), 0.1) == 0, "it does not stop")
        wait_until(lambda: gains(low(machine), 0.1) > 20, "it waits without an arbiter")


@pytest.mark.parametrize("size", [0, WORKING, 1 << 20])
def test_a_program_survives_what_a_neighbor_does_to_its_signal(
    machine: ArbitratedMachine, neighbor: Neighbor, size: int
) -> None:
    with neighbor.heeded(), machine.working(low(machine)):
        neighbor.set(1)
        wait_until(lambda: gains(low(machine), 0.1) == 0, "it does not stop")
        os.truncate(machine.folder / "high" / "signal", size)
        if size < WORKING:
            wait_until(lambda: gains(low(machine), 0.1) > 20, "a signal that is gone stops it")
        neighbor.set(0)
        os.truncate(machine.folder / "high" / "signal", 0)
        wait_until(lambda: gains(low(machine), 0.1) > 20, "it has ended")


@pytest.mark.parametrize("device", [layout.MAX_DEVICES, 255])
def test_a_device_that_no_container_has_signals_nothing(machine: ArbitratedMachine, device: int) -> None:
    heeding, high = machine.container("low"), machine.container("high", priority=0)
    wrong = Neighbor(heeding, high / "signal", device=device)
    (high / "signal").write_bytes(b"\xff" * 4096)
    with wrong.heeded(), machine.working(heeding):
        wait_until(lambda: gains(heeding, 0.1) > 20, "it waits")


def test_a_signal_that_is_not_there_or_leased_stops_nothing(machine: ArbitratedMachine, neighbor: Neighbor) -> None:
    neighbor.set(1)
    with lease(machine.folder / "high" / "signal") as taken:
        assert taken == "leased"
        with neighbor.heeded(), machine.working(low(machine)):
            wait_until(lambda: gains(low(machine), 0.1) > 20, "it waits")


def test_a_pause_within_work_is_waited_for_but_no_long_one(machine: ArbitratedMachine) -> None:
    """A neighbor that pauses for an hour by its own words is waited for as long as a pause may be."""
    heeding, high = machine.container("low"), machine.container("high", priority=0)
    endless = Neighbor(heeding, high / "signal", pause_us=(1 << 32) - 1)
    with endless.heeded(), machine.working(heeding):
        endless.set(1)
        wait_until(lambda: gains(heeding, 0.1) == 0, "it does not stop")
        endless.set(0)
        wait_until(lambda: gains(heeding, 0.1) > 20, "it waits")
