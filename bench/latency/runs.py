"""Runs a cell in a mode, in virtual time (see native/bench/virtual_time.c) or on the machine's clock."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.compute.driver_figures import Samples
from bench.compute.runs import Load
from bench.compute.virtual import Clock, Container, MachineClock, Together, VirtualClock, build_clock
from bench.gpu.mps_daemon import client_limits, mps_daemon
from bench.latency.cells import PLAIN, Cell, Mode
from bench.latency.figures import Compared, Served, compared, served
from bench.machine import MODEL, Bench, build, machine
from lamina.core.cards import card
from lamina.enforcement.driver import LocalGpu
from lamina.operations.verify.machine import Site
from lamina_lab import simgpu

SETTLE_S = 3.0
LOW_PRIORITY_PERCENT = 5
"""What the lower priority gets at least, as installed."""


class Runs:
    """Runs of the two programs, with what is alone measured once."""

    def __init__(self, folder: Path, hurry: int = 1, *, virtual: bool = True) -> None:
        self._folder, self._hurry = folder, hurry
        self._library = build_clock(folder) if virtual else None
        self._requests, self._neighbor = build(folder, "requests"), build(folder, "load")
        self._alone: dict[tuple[float, tuple[float, ...], float], Served] = {}
        self._neighbor_alone: dict[Load, float] = {}

    def compare(self, cell: Cell, mode: Mode) -> Compared:
        """The cell in this mode over what both are alone, without the facade."""
        return compared(self.run(cell, mode), self.alone(cell), self.neighbor_alone(cell))

    def alone(self, cell: Cell) -> Served:
        """The same requests without a neighbor."""
        if (key := (cell.request_ms, cell.train_ms, cell.load)) not in self._alone:
            self._alone[key] = self.run(cell, PLAIN, neighbors=0)
        return self._alone[key]

    def neighbor_alone(self, cell: Cell) -> float:
        """What a neighbor gets of the GPU's time without others."""
        if cell.neighbor not in self._neighbor_alone:
            one = Container(command=(self._neighbor, *cell.neighbor.arguments), limits=None)
            with machine() as bench, Together(bench, self._clock(bench), [one]) as together:
                together.begin(None)
                start = together.clock.now()
                together.pass_until(start + round(2e9 / self._hurry))
                self._neighbor_alone[cell.neighbor] = together.given()[0] / (together.clock.now() - start)
        return self._neighbor_alone[cell.neighbor]

    def _clock(self, bench: Bench) -> Clock:
        return MachineClock() if self._library is None else VirtualClock(self._library, bench.folder)

    def run(self, cell: Cell, mode: Mode, neighbors: int | None = None) -> Served:
        """One run; `neighbors` is that of the cell where it is left out."""
        settle_ns, seconds = round(SETTLE_S * 1e9 / self._hurry), cell.seconds / self._hurry
        moments = [settle_ns + round(moment * 1e9) for moment in cell.moments(self._hurry)]
        arrivals, results = self._folder / "arrivals", self._folder / "results"
        arrivals.write_bytes(b"".join(moment.to_bytes(8, "little") for moment in moments))
        train = tuple(str(round(ms * 1e6)) for ms in cell.train_ms)
        requests = (self._requests, arrivals, results, str(cell.kernels), *train)
        count = cell.neighbors if neighbors is None else neighbors
        with machine(time_slice_us=cell.slice_us, switch_us=cell.switch_us) as bench, _daemon(bench, mode) as clients:
            containers = [Container(command=requests, limits=mode.request, variables=clients[0])]
            load = (self._neighbor, *cell.neighbor.arguments)
            containers += [Container(command=load, limits=mode.neighbor, variables=clients[1])] * count
            with Together(bench, self._clock(bench), containers, low_priority_percent=LOW_PRIORITY_PERCENT) as together:
                together.begin(Samples)
                start = together.clock.now()
                together.pass_until(start + settle_ns)
                before = together.given()
                together.pass_until(end := start + settle_ns + round(seconds * 1e9))
                given = [after - b for b, after in zip(before, together.given(), strict=True)]
        return served([start + moment for moment in moments], results, end, sum(given[1:]) / (seconds * 1e9))


@contextmanager
def _daemon(bench: Bench, mode: Mode) -> Iterator[tuple[Mapping[str, str], Mapping[str, str]]]:
    """A daemon of MPS for the time of the block where the mode wants one, and the variables of its clients: those of
    the requests, and those of a neighbor."""
    if mode.mps is None:
        yield {}, {}
        return
    gpu = LocalGpu(index=0, uuid=bench.uuid, name=MODEL, memory_mib=card(MODEL).memory_mib)
    place = Site(bench.folder, simgpu.driver_folder(), gpu, bench.native(), simulated=True)
    with mps_daemon(place) as connect:
        request, neighbor = (connect | client_limits(bench.uuid, 0, percent) for percent in mode.mps)
        yield request, neighbor
