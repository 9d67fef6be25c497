"""Containers on one GPU and an arbiter: from the configuration and the grant to the gate. Coarse bounds that
hold on any machine; bench.compute has the exact figures."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from lamina.agent.containers.paths import write_limits
from lamina.configuration import load
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.enforcement import environment, read_usage
from lamina.enforcement.arbitration import Arbitration
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.waiting import wait_until

MS = 1_000_000
WITHOUT_END = ("linked", "until", str(2 * MS), "1")


class ArbitratedMachine:
    """A simulated GPU and containers on it, as the agent makes them."""

    def __init__(self, folder: Path, program: Path) -> None:
        machine = simgpu.Machine(gpus=(simgpu.GpuSpec(model="V100-SXM2-32GB"),), seed=str(folder))
        simgpu.write(machine, folder / "machine")
        self.folder, self.program, self.uuid = folder, program, place(machine)[0].uuid

    def container(
        self, name: str, *, cores: int = 0, policy: str = "none", most: int = 0, priority: int | None = None
    ) -> Path:
        folder = self.folder / name
        folder.mkdir()
        compute = ComputePolicy(policy)
        share = Share(gpu=self.uuid, memory_mib=2000, cores=cores, most_cores=most, compute_policy=compute)
        write_limits(folder, ContainerGrant(name=name, shares=(share,), priority=priority), (share,))
        return folder

    def variables(self, container: Path) -> dict[str, str]:
        base = {"SIMGPU_MACHINE": str(self.folder / "machine"), "PATH": "/usr/bin:/bin"}
        return environment(container, simgpu.driver_folder(), base)

    @contextmanager
    def working(self, container: Path) -> Iterator[None]:
        """A program that launches without end."""
        command = [str(self.program), *WITHOUT_END]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=self.variables(container), stdout=pipe, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            try:
                yield
            finally:
                process.kill()


@pytest.fixture
def machine(tmp_path: Path, programs: dict[str, Path]) -> ArbitratedMachine:
    return ArbitratedMachine(tmp_path, programs["launching"])


@contextmanager
def decided(*folders: Path, low_priority_percent: float = 0) -> Iterator[None]:
    ended, begun = Event(), Event()

    def decide() -> None:
        arbitration = Arbitration(low_priority_percent=low_priority_percent)
        arbitration.attend(folders)
        while not ended.wait(0.01):
            arbitration.tick(time.monotonic_ns())
            begun.set()

    thread = Thread(target=decide)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def busy_ms(container: Path) -> float:
    return read_usage(container / "usage").devices[0].busy_ns / MS


def gains(container: Path, seconds: float) -> float:
    """ms of the GPU's time that it gets meanwhile."""
    before = busy_ms(container)
    time.sleep(seconds)  # parts of the GPU's time show in real time only
    return busy_ms(container) - before


def test_a_lower_priority_stops_while_a_higher_one_has_work_and_goes_on_after(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low"), machine.container("high", priority=0)
    with decided(low, high), machine.working(low):
        assert gains(low, 0.3) > 50
        with machine.working(high):
            wait_until(lambda: busy_ms(high) > 100)
            assert gains(low, 0.5) < 30
        wait_until(lambda: gains(low, 0.2) > 50)


def test_a_lower_priority_gets_the_part_that_protects_it_from_starving(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low"), machine.container("high", priority=0)
    with decided(low, high, low_priority_percent=40), machine.working(low), machine.working(high):
        wait_until(lambda: busy_ms(high) > 100)
        assert 50 < gains(low, 2) < 1400


def test_no_process_waits_forever_for_an_arbiter_that_stopped(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low", cores=50, policy="cap"), machine.container("high", priority=0)
    with machine.working(low), machine.working(high):
        with decided(low, high):
            wait_until(lambda: busy_ms(high) > 100)
        wait_until(lambda: gains(low, 0.2) > 50)


@pytest.mark.parametrize(
    ("hami", "least", "most"),
    [
        ("{}", 500, 1100),
        ("{gpuCorePolicy: force}", 100, 400),
        ("{gpuCorePolicy: disable}", 0, 1),
        ("{disableCoreLimit: true}", 0, 1),
    ],
)
def test_the_policy_of_the_configuration_reaches_the_gate(
    machine: ArbitratedMachine, hami: str, least: int, most: int
) -> None:
    """20 percent of the GPU, of which no one else wants anything. What has no limit is not measured."""
    policy = ComputePolicy(load(f"hami: {hami}", "config").sharing.compute_policy)
    one = machine.container("one", cores=20, policy=policy.value)
    with decided(one), machine.working(one):
        gains(one, 0.3)  # what was saved up before the first launch
        assert least <= gains(one, 1) <= most


def test_idle_time_is_lent_up_to_the_limit_of_the_container(machine: ArbitratedMachine) -> None:
    one = machine.container("one", cores=10, policy="weight", most=40)
    with decided(one), machine.working(one):
        wait_until(lambda: gains(one, 0.5) > 100)
        assert 150 < gains(one, 1) < 600
