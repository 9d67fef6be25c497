"""A simulated machine to measure on, and programs on it with and without the facade."""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lamina.core.cards import card
from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from lamina.operations.gpu_load import KERNELS
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
MODEL = "H200"
"""The card with the most memory, so that 256 processes have room for their contexts."""
CONTEXT_MIB = card(MODEL).context_bytes // MIB


@dataclass(frozen=True)
class Bench:
    """A folder with a machine, and the variables under which a program runs on it."""

    folder: Path
    uuid: str
    hurry: int = 1
    """How many times shorter everything takes: more than 1 to try a benchmark out, with figures that mean nothing."""

    @property
    def kernels(self) -> Path:
        """The module that programs load, as a real driver would take it."""
        return self.folder / "kernels.ptx"

    def sleep(self, seconds: float) -> None:
        """Let programs work for so long: GPU time shows in real time only."""
        time.sleep(seconds / self.hurry)

    def native(self) -> dict[str, str]:
        """No facade: the program finds the simulated driver itself."""
        return _plain() | simgpu.environment(self.folder / "machine")

    def ours(
        self,
        memory_mib: int = 0,
        *,
        cores: int = 0,
        most: int = 0,
        policy: ComputePolicy = ComputePolicy.NONE,
        priority: int = 1,
        context_mib: int = CONTEXT_MIB,
    ) -> dict[str, str]:
        """Held by the facade to a container of its own; without a figure to all of the memory. With `context_mib` 0 it
        is the first one on its GPU, so that it is not known what a context costs."""
        container = Path(tempfile.mkdtemp(prefix="container-", dir=self.folder))
        limit = DeviceLimit(
            uuid=self.uuid,
            memory_bytes=(memory_mib or card(MODEL).memory_mib) * MIB,
            context_bytes=context_mib * MIB,
            cores_percent=cores,
            most_percent=most,
            compute_policy=policy,
        )
        write_container(container, Limits(devices=(limit,), priority=priority))
        base = _plain() | {"SIMGPU_MACHINE": str(self.folder / "machine")}
        return environment(container, simgpu.driver_folder(), base)

    def state(self) -> simgpu.SimulatedGpu:
        """The GPU now."""
        return simgpu.read(self.folder / "machine").gpus[0]


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "LAMINA_", "LD_"))}


@contextmanager
def machine(
    *, context_us: int = 0, allocation_us: int = 0, time_slice_us: int = 0, switch_us: int = 0, hurry: int = 1
) -> Iterator[Bench]:
    """A machine of one GPU for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name:
        folder = Path(name)
        described = simgpu.Machine(
            gpus=(simgpu.GpuSpec(model=MODEL, time_slice_us=time_slice_us, switch_us=switch_us),),
            context_us=context_us,
            allocation_us=allocation_us,
            seed=name,
        )
        simgpu.write(described, folder / "machine")
        (folder / "kernels.ptx").write_bytes(KERNELS)
        yield Bench(folder, place(described)[0].uuid, hurry)


def add_hurry(parser: argparse.ArgumentParser) -> None:
    """The option to try a benchmark out."""
    parser.add_argument("--hurry", type=int, default=1, help="measure so many times shorter, to try it out (default 1)")


def build(folder: Path, name: str) -> Path:
    """Compiles native/bench/NAME.c. Raises subprocess.CalledProcessError with the compiler's words on stderr."""
    program = folder / name
    includes = ("-Inative/include", "-Ilab/native/include", "-Inative/bench")
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", *includes)
    sources = (f"native/bench/{name}.c", "native/bench/bench.c")
    command = [os.environ.get("CC", "cc"), *flags, *sources, "-o", str(program), "-lpthread", "-ldl"]
    subprocess.run(command, cwd=ROOT, check=True)
    return program


class Worker:
    """One process of a benchmark's program, spoken to line by line."""

    def __init__(self, command: Sequence[str | Path], variables: dict[str, str]) -> None:
        pipe, silent = subprocess.PIPE, subprocess.DEVNULL  # a program says on its output what went wrong
        self._process = subprocess.Popen(
            command, env=variables, stdin=pipe, stdout=pipe, stderr=silent, text=True, bufsize=1
        )
        self.pid = self._process.pid

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")

    def receive(self) -> str:
        """The next line. Raises RuntimeError when the program has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return line.strip()

    def kill(self) -> None:
        self._process.kill()

    def finish(self) -> None:
        """Closes the program's standard input; what it says after that can still be heard."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.stdin = None

    def close(self) -> None:
        """Ends the program, whatever it does."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def workers(count: int, command: Sequence[str | Path], variables: dict[str, str]) -> Iterator[list[Worker]]:
    """So many processes that have said "ready"."""
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            worker = Worker(command, variables)
            stack.callback(worker.close)
            started.append(worker)
        for worker in started:
            if (line := worker.receive()) != "ready":
                raise RuntimeError(line)
        yield started


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def soon(seconds: float = 0.005) -> int:
    """A moment from now, in ns of CLOCK_MONOTONIC."""
    return time.monotonic_ns() + int(seconds * 1e9)
