"""A cell of the matrix in virtual time: see native/bench/virtual_time.c.

One process runs at a time, and time passes only where programs wait, so a result does not depend on the machine that it
is computed on. The facade, the simulated driver and the arbiter are the shipped ones.
"""

import ctypes
import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.compute.driver_figures import Averages, Figures
from bench.compute.matrix import Cell
from bench.machine import ROOT, Bench, Worker, machine
from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.files import ARBITER
from lamina_lab import simgpu

BEGIN_NS = 1_000_000_000_000
TICK_NS = 10_000_000
"""How often the arbiter decides."""
_BYTES = 4096


def build_clock(folder: Path) -> Path:
    """Compiles the clock. Raises subprocess.CalledProcessError with the compiler's words on stderr."""
    library = folder / "virtual_time.so"
    flags = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
    command = [os.environ.get("CC", "cc"), *flags, "-shared", "-fPIC", "native/bench/virtual_time.c", "-o"]
    subprocess.run([*command, str(library)], cwd=ROOT, check=True)
    return library


class VirtualClock:
    """The clock of one run, driven from here."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._path, self._preload, self._programs = folder / "clock", library, 0
        self._path.write_bytes(BEGIN_NS.to_bytes(8, "little").ljust(_BYTES, b"\0"))
        self._library = ctypes.CDLL(str(library))
        self._library.virtual_time_now.restype = ctypes.c_uint64
        self._library.virtual_time_sleep_until.argtypes = [ctypes.c_uint64]
        self._library.virtual_time_start.restype = ctypes.c_bool
        self._library.virtual_time_drive(str(self._path).encode())

    def variables(self, base: dict[str, str]) -> dict[str, str]:
        """`base` with what puts another program on this clock."""
        number, self._programs = self._programs, self._programs + 1
        return base | {
            "LD_PRELOAD": ":".join(filter(None, (str(self._preload), base.get("LD_PRELOAD", "")))),
            "VIRTUAL_TIME": str(self._path),
            "VIRTUAL_TIME_SLOT": str(number),
        }

    def start(self) -> None:
        """Start the clock. The programs must already run."""
        if not self._library.virtual_time_start(self._programs):
            raise RuntimeError("a program does not take part in virtual time")

    def now(self) -> int:
        """In ns."""
        return int(self._library.virtual_time_now())

    def sleep_until(self, moment: int) -> None:
        """Lets the programs run until then."""
        self._library.virtual_time_sleep_until(moment)


def measure(
    library: Path,
    program: Path,
    cell: Cell,
    *,
    settle_s: float,
    seconds: float,
    limited: bool = True,
    figures: Figures | None = Averages,
    ignoring: Sequence[int] = (),
) -> tuple[float, ...]:
    """Percent of the GPU's time that each container got in so many seconds, after it had time to settle.

    Without the driver's `figures` time slices are as long as is assumed; without `limited` no container has a limit;
    containers with the numbers `ignoring` launch outside of their windows too.
    """
    with machine(time_slice_us=cell.slice_us, switch_us=cell.switch_us) as bench, ExitStack() as stack:
        clock, workers, folders = VirtualClock(library, bench.folder), [], []
        for load in cell.loads:
            policy = ComputePolicy.CAP if limited else ComputePolicy.NONE
            variables = bench.ours(cores=load.cores if limited else 0, policy=policy)
            folders.append(Path(variables["LAMINA_DIR"]))
            workers.append(Worker([program, *load.arguments], clock.variables(variables)))
            stack.callback(workers[-1].close)
        for worker in workers:
            if (line := worker.receive()) != "ready":
                raise RuntimeError(line)
        for worker in workers:
            worker.say("go")
        clock.start()
        driver = figures(folders) if figures is not None else None
        arbitration = Arbitration(confirm=driver.confirmation) if driver is not None else Arbitration()
        arbitration.attend(folders)
        stack.callback(arbitration.close)
        begin, end = (clock.now() + round(s * 1e9) for s in (settle_s, settle_s + seconds))
        before = [0] * len(workers)
        while (now := clock.now()) < end:
            given = _given(bench, workers, now)
            before = given if now <= begin else before
            if driver is not None:
                driver.look(now, given)
            arbitration.tick(now)
            for number in ignoring:
                _remove_window(folders[number])
            clock.sleep_until(now + TICK_NS)
        after, last = _given(bench, workers, now), now
        return tuple(100 * (b - a) / (last - begin) for a, b in zip(before, after, strict=True))


def _remove_window(folder: Path) -> None:
    with (folder / ARBITER).open("r+b") as file:
        file.seek(layout.ArbiterFile.lendings.offset + layout.LendingRecord.window.offset)
        file.write(bytes(8))


def _given(bench: Bench, workers: Sequence[Worker], now: int) -> list[int]:
    busy = {process.pid: process.busy_ns for process in simgpu.read(bench.folder / "machine", now).gpus[0].processes}
    return [busy.get(worker.pid, 0) for worker in workers]
