"""Runs the matrix of conditions in virtual and in real time, and reports how well limits were held.

In real time the simulated GPU runs on the machine's own clock. Programs that wait for a CPU launch late, which is no
limit's doing: this time is not expected of their shares, and a cell in which they waited long is not judged.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from msgspec import structs

from bench.compute import matrix, virtual
from bench.compute.driver_figures import Averages, Samples
from bench.compute.matrix import Cell
from bench.compute.runs import Load, measure, started
from bench.machine import Bench, Worker, machine
from bench.measures import Report
from lamina_lab import simgpu

SETTLE_S, SECONDS = 8, 8
ALONE_SECONDS, ALONE_KERNEL_MS = 4, 10.0
MAX_WAITED = 5.0
"""A program that waited for a CPU for a larger part of the time, in percent, was not able to keep the GPU busy."""


class Shares(NamedTuple):
    """By container: percent of the GPU's time, and of the time in which its program waited for a CPU."""

    got: tuple[float, ...]
    waited: tuple[float, ...]


Measure = Callable[[Cell], Shares | None]
"""None where the cell cannot be judged."""


class Conditions:
    """Errors over cells, in points."""

    def __init__(self, alone: Callable[[Load], float]) -> None:
        self._alone = alone
        self.errors: list[float] = []
        self.judged: list[bool] = []

    def run(self, cells: Sequence[Cell], measure: Measure) -> None:
        for cell in cells:
            shares = measure(cell)
            self.judged.append(shares is not None)
            if shares is None:
                print(f"{cell.name}: not judged, because programs waited for a CPU", flush=True)
                continue
            most = [self._alone(load) - waited for load, waited in zip(cell.loads, shares.waited, strict=True)]
            found = matrix.errors(cell, shares.got, most)
            self.errors += found
            figures = ", ".join(f"{percent:.1f}" for percent in shares.got)
            print(f"{cell.name}: {figures} %{'' if matrix.kept(found) else '   MISSED'}", flush=True)

    def report(self, report: Report, name: str) -> None:
        report.add(f"{name}-judged", "percent", ours=100 * mean(self.judged))
        if self.errors:
            report.add(f"{name}-error", "points", ours=mean(map(abs, self.errors)))
            report.add(f"{name}-over", "points", ours=max(self.errors))
            report.add(f"{name}-short", "points", ours=-min(self.errors))

    def control(self, report: Report, name: str, measure: str) -> None:
        """The same with the protection removed; `measure` is the one that must break."""
        worst = {"over": max, "short": lambda errors: -min(errors), "error": lambda errors: mean(map(abs, errors))}
        report.control(f"{name}-{measure}", "points", ours=worst[measure](self.errors))


class Alone:
    """What a loop gets alone and without a limit, in percent; measured once for each way to launch and kernel.

    Loops of kernels longer than 10 ms lose no more than those of 10 ms, and are taken for such: the simulated GPU
    counts kernels that were queued together only when a process calls it, which within a second is too coarse for them.
    """

    def __init__(self, measured: Callable[[Load], float]) -> None:
        self._measured = measured
        self._known: dict[tuple[str, float], float] = {}

    def __call__(self, load: Load) -> float:
        kernel_ms = min(load.kernel_ms, ALONE_KERNEL_MS)
        if (key := (load.how, kernel_ms)) not in self._known:
            self._known[key] = self._measured(structs.replace(load, kernel_ms=kernel_ms))
        return self._known[key]


class Virtual:
    """The matrix without noise."""

    def __init__(self, folder: Path, program: Path, hurry: int = 1) -> None:
        self._library, self._program, self._hurry = virtual.build_clock(folder), program, hurry
        self.alone = Alone(self._loop)

    def _loop(self, load: Load) -> float:
        one = Cell(slice_us=2000, loads=(load,))
        (got,) = self._measured(one, 0.2, 2, limited=False)
        return got

    def measure(self, cell: Cell, **how: Any) -> Shares:
        """`how` is passed to virtual.measure."""
        got = self._measured(cell, SETTLE_S, SECONDS, **how)
        return Shares(got, (0.0,) * len(got))

    def _measured(self, cell: Cell, settle_s: float, seconds: float, **how: Any) -> tuple[float, ...]:
        times = {"settle_s": settle_s / self._hurry, "seconds": seconds / self._hurry}
        return virtual.measure(self._library, self._program, cell, **times, **how)


def in_virtual_time(report: Report, conditions: Virtual, every: int) -> None:
    """Every Nth cell, and two null controls: without a limit, and with the length of slices taken for 2 ms."""
    found = Conditions(conditions.alone)
    found.run(matrix.known_failures() + matrix.cells()[::every], conditions.measure)
    found.report(report, "matrix")
    loops = [Cell(slice_us=500, loads=(Load(cores=30, kernel_ms=1.0), Load(cores=60, kernel_ms=1.0)))]
    unlimited, assumed = Conditions(conditions.alone), Conditions(conditions.alone)
    print("null control: without limits")
    unlimited.run(loops, lambda cell: conditions.measure(cell, limited=False))
    unlimited.control(report, "matrix", "over")
    print("null control: the length of time slices is assumed")
    assumed.run(matrix.known_failures(), lambda cell: conditions.measure(cell, figures=None))
    assumed.control(report, "matrix", "short")


def switching(report: Report, conditions: Virtual, every: int) -> None:
    """Short kernels where time is lost between processes, and as a null control the same without launch windows."""
    found, without = Conditions(conditions.alone), Conditions(conditions.alone)
    cells = matrix.switching()[::every]
    found.run(cells, conditions.measure)
    found.report(report, "switching")
    print("null control: without launch windows")
    without.run(cells, lambda cell: conditions.measure(cell, ignoring=range(len(cell.loads))))
    without.control(report, "switching", "short")


def like_the_card(report: Report, conditions: Virtual) -> None:
    """Shares in virtual time next to those on an H200; as a null control with a driver whose figures are right."""
    for figures, add in ((Samples, report.add), (Averages, report.control)):
        differences = []
        for cell, there in matrix.on_the_card():
            here = conditions.measure(cell, figures=figures).got
            differences += [abs(a - b) for a, b in zip(here, there, strict=True)]
            both = "; ".join(f"{a:.1f} ({b:.1f})" for a, b in zip(here, there, strict=True))
            print(f"{cell.name}: {both} %, on the card in parentheses", flush=True)
        add("card-difference", "points", ours=max(differences))


class OnTheClock:
    """The matrix on the machine's clock, by the simulated GPU's own account."""

    def __init__(self, program: Path, seconds: int, hurry: int = 1) -> None:
        self._program, self._seconds, self._hurry = program, seconds, hurry
        self.alone = Alone(self._loop)

    def _loop(self, load: Load) -> float:
        """Here the machine's own time for each launch counts, which short kernels notice."""
        with machine(hurry=self._hurry) as bench:
            got = measure(bench, self._program, (load,), seconds=ALONE_SECONDS, limited=False).mean(0)
        print(f"{load.how} {load.kernel_ms:g} ms alone, without a limit: {got:.1f} %", flush=True)
        return got

    def measure(self, cell: Cell) -> Shares | None:
        """What its containers got after they had time to settle."""
        with (
            machine(time_slice_us=cell.slice_us, switch_us=cell.switch_us, hurry=self._hurry) as bench,
            started(bench, self._program, cell.loads) as groups,
        ):
            pids = [worker.pid for (worker,) in groups]
            return _measured(bench, [worker for (worker,) in groups], pids, self._seconds)

    def two_commands(self, cell: Cell) -> Shares | None:
        """By two `lamina run`."""
        return _two_commands(self._program, cell, self._seconds, self._hurry)


def in_real_time(report: Report, conditions: OnTheClock, every: int) -> None:
    """Every Nth cell, and two `lamina run`."""
    found = Conditions(conditions.alone)
    found.run(matrix.known_failures() + matrix.cells()[::every], conditions.measure)
    pair = Cell(slice_us=2000, loads=(Load(cores=30, kernel_ms=1.0), Load(cores=60, kernel_ms=10.0)))
    print("two runs of `lamina run`")
    found.run([pair], conditions.two_commands)
    found.report(report, "real-matrix")


def _two_commands(program: Path, cell: Cell, seconds: int, hurry: int) -> Shares | None:
    described = machine(time_slice_us=cell.slice_us, switch_us=cell.switch_us, hurry=hurry)
    with described as bench, ExitStack() as stack:
        variables = bench.native() | {"LAMINA_DRIVER": str(simgpu.driver_folder())}
        commands = []
        for load in cell.loads:
            run = [sys.executable, "-m", "lamina", "run", "--memory", "4000", "--cores", str(load.cores), "--", program]
            commands.append(Worker([*run, *load.arguments], variables))
            stack.callback(commands[-1].close)
        for command in commands:
            if (line := command.receive()) != "ready":
                raise RuntimeError(line)
        parents = {_parent(process.pid): process.pid for process in bench.state().processes}
        return _measured(bench, commands, [parents[command.pid] for command in commands], seconds)


def _measured(bench: Bench, workers: Sequence[Worker], pids: Sequence[int], seconds: int) -> Shares | None:
    """Lets the programs begin; what each process was given after they had time to settle."""
    for worker in workers:
        worker.say("go")
    bench.sleep(SETTLE_S)
    before, begin = (_given(bench, pids), _waited_ns(pids)), time.monotonic_ns()
    bench.sleep(seconds)
    took = time.monotonic_ns() - begin
    own, *waited = _parts(before[1], _waited_ns(pids), took)
    if max(own, *waited) > MAX_WAITED:
        return None
    return Shares(_parts(before[0], _given(bench, pids), took), tuple(waited))


def _parts(before: Sequence[int], after: Sequence[int], took: int) -> tuple[float, ...]:
    """How much each counter went on, in percent of the time."""
    return tuple(100 * (b - a) / took for a, b in zip(before, after, strict=True))


def _given(bench: Bench, pids: Sequence[int]) -> list[int]:
    busy = {process.pid: process.busy_ns for process in bench.state().processes}
    return [busy.get(pid, 0) for pid in pids]


def _waited_ns(pids: Sequence[int]) -> list[int]:
    """For how long this process and those waited for a CPU, ever."""
    files = [Path("/proc/self/schedstat"), *(Path(f"/proc/{pid}/schedstat") for pid in pids)]
    return [int(file.read_text(encoding="ascii").split()[1]) for file in files]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
