"""Containers on one simulated GPU and an arbiter, from the grant to the gate."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from lamina.agent.containers.paths import write_limits
from lamina.core.grants import ComputePolicy, ContainerGrant, Share
from lamina.enforcement import environment, read_usage
from lamina.enforcement.arbitration import Arbitration
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place

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
