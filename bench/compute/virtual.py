"""A cell of the matrix in virtual time: see native/bench/virtual_time.c.

One process runs at a time, and time passes only where programs wait, so a result does not depend on the machine that it
is computed on. The facade, the simulated driver and the arbiter are the shipped ones.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec import Struct

from bench.compute.driver_figures import Averages, DriverFigures, Figures
from bench.compute.matrix import Cell
from bench.machine import ROOT, Bench, Worker, machine
from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.driver_figures import Confirmation
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


class Clock(Protocol):
    """What programs and the arbiter measure time by."""

    def variables(self, base: dict[str, str]) -> dict[str, str]:
        """`base` with what puts another program on this clock."""
        ...

    def start(self) -> None:
        """Start the clock. The programs must already run."""
        ...

    def now(self) -> int:
        """In ns."""
        ...

    def sleep_until(self, moment: int) -> None:
        """Lets the programs run until then."""
        ...


class MachineClock:
    """The machine's own."""

    def variables(self, base: dict[str, str]) -> dict[str, str]:
        return base

    def start(self) -> None: ...

    def now(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, moment: int) -> None:
        time.sleep(max(0, moment - self.now()) / 1e9)


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
        number, self._programs = self._programs, self._programs + 1
        return base | {
            "LD_PRELOAD": ":".join(filter(None, (str(self._preload), base.get("LD_PRELOAD", "")))),
            "VIRTUAL_TIME": str(self._path),
            "VIRTUAL_TIME_SLOT": str(number),
        }

    def start(self) -> None:
        if not self._library.virtual_time_start(self._programs):
            raise RuntimeError("a program does not take part in virtual time")

    def now(self) -> int:
        return int(self._library.virtual_time_now())

    def sleep_until(self, moment: int) -> None:
        self._library.virtual_time_sleep_until(moment)


class Container(Struct, frozen=True, kw_only=True):
    """One process in a container of its own. Without `limits` it finds the driver itself."""

    command: tuple[str | Path, ...]
    limits: Mapping[str, Any] | None = {}
    """As `Bench.ours` takes them."""
    variables: Mapping[str, str] = {}


class Together:
    """Containers that work at the same time, and an arbiter."""

    def __init__(
        self, bench: Bench, clock: Clock, containers: Sequence[Container], *, low_priority_percent: float = 0
    ) -> None:
        self._bench, self.clock = bench, clock
        self._stack = ExitStack()
        self.workers: list[Worker] = []
        self.folders: list[Path] = []
        self._arbitration = Arbitration(confirm=self._confirm, low_priority_percent=low_priority_percent)
        self._figures: DriverFigures | None = None
        for container in containers:
            self._start(container)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, container: Container) -> None:
        if container.limits is None:
            variables = self._bench.native()
        else:
            variables = self._bench.ours(**container.limits)
            self.folders.append(Path(variables["LAMINA_DIR"]))
        variables = self.clock.variables(variables | container.variables)
        self.workers.append(Worker(container.command, variables))
        self._stack.callback(self.workers[-1].close)

    def begin(self, figures: Figures | None) -> None:
        """Start the programs, and time. Without the driver's `figures` containers are taken at their word."""
        for worker in self.workers:
            if (line := worker.receive()) != "ready":
                raise RuntimeError(line)
        for worker in self.workers:
            worker.say("go")
        self.clock.start()
        self._figures = figures(self.folders) if figures is not None and self.folders else None
        self._arbitration.attend(self.folders)
        self._stack.callback(self._arbitration.close)

    def pass_until(self, end: int, *, ignoring: Sequence[int] = ()) -> None:
        """Let the programs work until then, while the arbiter decides. Containers with the numbers `ignoring` launch
        outside of their windows too."""
        while (now := self.clock.now()) < end:
            if self._figures is not None:
                self._figures.look(now, self.given())
            self._arbitration.tick(now)
            for number in ignoring:
                _remove_window(self.folders[number])
            self.clock.sleep_until(min(now + TICK_NS, end))

    def given(self) -> list[int]:
        """The time that the GPU gave to each until now, in ns."""
        state = simgpu.read(self._bench.folder / "machine", self.clock.now())
        busy = {process.pid: process.busy_ns for process in state.gpus[0].processes}
        return [busy.get(worker.pid, 0) for worker in self.workers]

    def _confirm(self, folder: Path, uuid: str) -> Confirmation | None:
        return self._figures.confirmation(folder, uuid) if self._figures is not None else None


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

    Without the driver's `figures` time slices are as long as is assumed; without `limited` no container has a limit.
    `ignoring` is that of `Together.pass_until`.
    """
    policy = ComputePolicy.CAP if limited else ComputePolicy.NONE
    containers = [
        Container(command=(program, *load.arguments), limits={"cores": load.cores if limited else 0, "policy": policy})
        for load in cell.loads
    ]
    with (
        machine(time_slice_us=cell.slice_us, switch_us=cell.switch_us) as bench,
        Together(bench, VirtualClock(library, bench.folder), containers) as together,
    ):
        together.begin(figures)
        begin = together.clock.now() + round(settle_s * 1e9)
        together.pass_until(begin, ignoring=ignoring)
        before, begun = together.given(), together.clock.now()
        together.pass_until(begin + round(seconds * 1e9), ignoring=ignoring)
        took = together.clock.now() - begun
        return tuple(100 * (b - a) / took for a, b in zip(before, together.given(), strict=True))


def _remove_window(folder: Path) -> None:
    with (folder / ARBITER).open("r+b") as file:
        file.seek(layout.ArbiterFile.lendings.offset + layout.LendingRecord.window.offset)
        file.write(bytes(8))
