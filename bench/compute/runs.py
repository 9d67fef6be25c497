"""Containers at work on one simulated GPU, and what each got of its time, by the GPU's own account."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct

from bench.machine import Bench, Worker, workers
from lamina.core.grants import ComputePolicy
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.driver_work import DriverWork
from lamina_lab import simgpu

TICK_S = 0.01


class Load(Struct, frozen=True, kw_only=True):
    """A container: its limit in percent (0: none), with what is lent at most `most` (0: all), and what its processes
    do; see native/bench/load.c."""

    cores: int
    most: int = 0
    how: str = "loop"
    kernel_ms: float = 1.0
    blocks: int = 1056
    burst: int = 10
    processes: int = 1
    policy: ComputePolicy = ComputePolicy.CAP
    priority: int = 1

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the program."""
        return self.how, str(round(self.kernel_ms * 1e6)), str(self.blocks), str(self.burst)


class Result(Struct, frozen=True, kw_only=True):
    """Percent of the GPU's time: one row per window of a second, in each a figure per container. `stall_ms` is the
    longest launch of any."""

    windows: tuple[tuple[float, ...], ...]
    stall_ms: float

    def mean(self, container: int, *, begin: int = 1, end: int | None = None) -> float:
        """Over the windows from `begin` to `end`; without them over all but the first, in which programs start."""
        chosen = [window[container] for window in self.windows[begin:end]]
        return sum(chosen) / len(chosen)

    def worst(self, container: int, least: float, most: float) -> float:
        """The farthest that a window after the first was from that range."""
        return max(abs(off(window[container], least, most)) for window in self.windows[1:])


def off(value: float, least: float, most: float) -> float:
    """How far a value is below (negative) or above a range."""
    return min(0.0, value - least) + max(0.0, value - most)


@contextmanager
def arbitrated(folders: list[Path], work: DriverWork | None = None) -> Iterator[None]:
    """What the agent does, in a thread. `work` has what the driver says; without it containers are taken at their
    word."""
    ended = Event()

    def decide() -> None:
        arbitration = Arbitration() if work is None else Arbitration(confirm=work.confirmation)
        arbitration.attend(folders)
        while not ended.wait(TICK_S):
            arbitration.tick(now := time.monotonic_ns())
            if work is not None:
                work.look(arbitration.containers, now)

    thread = Thread(target=decide, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _asking(bench: Bench) -> Iterator[DriverWork]:
    """NVML of the simulated machine, in this process."""
    before = os.environ.get("SIMGPU_MACHINE")
    os.environ["SIMGPU_MACHINE"] = str(bench.folder / "machine")
    work = DriverWork(simgpu.driver_folder())
    try:
        yield work
    finally:
        work.close()
        os.environ.pop("SIMGPU_MACHINE")
        if before is not None:
            os.environ["SIMGPU_MACHINE"] = before


@contextmanager
def started(
    bench: Bench, program: Path, loads: Sequence[Load], *, limited: bool = True
) -> Iterator[list[list[Worker]]]:
    """Each load's processes, ready to start, and an arbiter. Without `limited` no load has a limit."""
    with ExitStack() as stack:
        groups, folders = [], []
        for load in loads:
            policy = load.policy if limited and load.cores else ComputePolicy.NONE
            cores, most = (load.cores, load.most) if limited else (0, 0)
            variables = bench.ours(cores=cores, most=most, policy=policy, priority=load.priority)
            folders.append(Path(variables["LAMINA_DIR"]))
            command = [program, *load.arguments]
            groups.append(stack.enter_context(workers(load.processes, command, variables)))
        stack.enter_context(arbitrated(folders, stack.enter_context(_asking(bench))))
        time.sleep(10 * TICK_S)  # no worker starts before the first decision
        yield groups


def measure(bench: Bench, program: Path, loads: Sequence[Load], *, seconds: int, limited: bool = True) -> Result:
    """Runs the loads together. Without `limited` no load has a limit: the null control."""
    with started(bench, program, loads, limited=limited) as groups:
        for worker in (worker for group in groups for worker in group):
            worker.say("go")
        windows = _windows(bench, groups, seconds)
        stalls = [_end(worker) for group in groups for worker in group]
    return Result(windows=windows, stall_ms=max(stalls) / 1e6)


def _windows(bench: Bench, groups: Sequence[Sequence[Worker]], seconds: int) -> tuple[tuple[float, ...], ...]:
    seen = [given(bench, groups)]
    begin = time.monotonic()
    for number in range(1, seconds + 1):
        time.sleep(max(0.0, begin + number / bench.hurry - time.monotonic()))
        seen.append(given(bench, groups))
    return tuple(
        tuple(100 * (b - a) / (after[0] - before[0]) for a, b in zip(before[1], after[1], strict=True))
        for before, after in pairwise(seen)
    )


def given(bench: Bench, groups: Sequence[Sequence[Worker]]) -> tuple[int, tuple[int, ...]]:
    """The moment, and the GPU time that each container was given until then, in ns."""
    busy = {process.pid: process.busy_ns for process in bench.state().processes}
    return time.monotonic_ns(), tuple(sum(busy.get(worker.pid, 0) for worker in group) for group in groups)


def _end(worker: Worker) -> int:
    """Lets a program end and returns its longest launch in ns."""
    worker.finish()
    return int(worker.receive().split()[1])
