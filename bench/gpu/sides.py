"""A side of the comparison: the card or a simulated one, and what it answers to rows."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.compute.runs import arbitrated
from bench.gpu import programs
from bench.gpu.answers import Facts, facts
from bench.gpu.mps_daemon import client_limits, mps_daemon
from bench.gpu.rows import RATE, Row
from bench.gpu.turns import PAIRS, ROUNDS, added, in_turns, slowed
from lamina.core.grants import ComputePolicy
from lamina.errors import Outside
from lamina.operations.verify.machine import Site, site

NESTED = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


class Deadline:
    """When the whole test has to be over."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock() + seconds

    def allows(self, seconds: float) -> float:
        """At most so many seconds, and no more than are left. Raises Outside when none are left."""
        left = self._ends - self._clock()
        if left < 1:
            raise Outside("there was no time left for it")
        return min(seconds, left)


class Side:
    """One GPU that rows are tried on."""

    def __init__(self, place: Site, deadline: Deadline) -> None:
        self.place = place
        self._deadline = deadline
        self.about: Facts = self._once("calibration", (), self.place.free(), 30.0)

    def ask(self, row: Row) -> Facts:
        """The facts of a row. Raises Outside, with the reason, where there are none."""
        if row.nested and subprocess.run([*self._nested(), "true"], capture_output=True, check=False).returncode != 0:
            raise Outside("not tested: this machine lets no one make PID namespaces")
        if row.needs and (why := programs.import_error(row.needs)):
            raise Outside(f"not tested: {row.needs} cannot be imported: {why}")
        if row.mps:
            with mps_daemon(self.place) as connected:
                return self._ask(row, connected)
        return self._ask(row, {})

    def _ask(self, row: Row, connected: Mapping[str, str]) -> Facts:
        """`connected`: the variables that make a program a client of MPS, if it is to be one."""
        if row.way in ("both", "slowed"):
            return self._in_turns(row, connected)
        if len(row.cores) > 1:
            return self._at_once(row)
        variables = self.place.free() if row.way == "free" else self._held(row)
        return self._row(row, {**variables, **connected, **self._client_limits(row)})

    def _nested(self) -> tuple[str, ...]:
        """NVIDIA's driver needs the /proc of the namespace, and simgpu that of the machine."""
        return NESTED if self.place.simulated else (*NESTED, "--mount-proc")

    def _held(self, row: Row) -> dict[str, str]:
        policy = ComputePolicy.THREADS if row.mps else ComputePolicy.CAP
        return self.place.held(row.memory_mib, cores=row.cores[0], policy=policy)

    def _client_limits(self, row: Row) -> dict[str, str]:
        return client_limits(self.place.gpu.uuid, row.memory_mib, row.cores[0]) if row.mps else {}

    def _row(self, row: Row, variables: Mapping[str, str]) -> Facts:
        prefix = self._nested() if row.nested else ()
        return self._once(row.probe, self._arguments(row), variables, row.limit_s, prefix)

    def _arguments(self, row: Row) -> tuple[str, ...]:
        return tuple(str(self.about["rate"]) if word == RATE else word for word in row.arguments)

    def _once(
        self,
        probe: str,
        arguments: tuple[str, ...],
        variables: Mapping[str, str],
        seconds: float,
        prefix: tuple[str, ...] = (),
    ) -> Facts:
        allowed = self._deadline.allows(seconds)
        command = [*prefix, *programs.python(f"bench.gpu.probes.{probe}", *arguments)]
        return facts(*programs.output(programs.start(command, variables), allowed))

    def _at_once(self, row: Row) -> Facts:
        """Programs that run at the same time, with the agent's decisions about them if they have limits."""
        allowed = self._deadline.allows(row.limit_s)
        found: Facts = {}
        free = row.way == "free"
        with ExitStack() as stack:
            places = [self.place.free() if free else self.place.held(cores=cores) for cores in row.cores]
            if self.place.enforced and not free:
                stack.enter_context(arbitrated([Path(variables["LAMINA_DIR"]) for variables in places]))
            command = programs.python(f"bench.gpu.probes.{row.probe}", *self._arguments(row))
            started = []
            for variables in places:
                program = programs.start(command, variables)
                stack.callback(programs.end, program)
                started.append(program)
            for number, (cores, program) in enumerate(zip(row.cores, started, strict=True), 1):
                name = f"program {number}" if free else f"share of {cores} %, number {number}"
                found[name] = next(iter(facts(*programs.output(program, allowed)).values()))
        return found

    def _in_turns(self, row: Row, connected: Mapping[str, str]) -> Facts:
        """The facts of programs without and with the facade, next to each other."""
        command = programs.python(f"bench.gpu.probes.{row.probe}", *self._arguments(row))
        pairs, rounds = (PAIRS, ROUNDS) if row.way == "both" else (1, 1)
        seconds = self._deadline.allows(row.limit_s)
        free = {**self.place.free(), **connected}
        held = {**self._held(row), **connected, **self._client_limits(row)}
        native, ours = in_turns(command, free, held, seconds, pairs, rounds)
        return added(native, ours) if row.way == "both" else slowed(native, ours)


@contextmanager
def side(gpu: str, simulate: str | None, deadline: Deadline, *, enforced: bool = True) -> Iterator[Side]:
    """The GPU of this machine, or a simulated one. Raises Outside without one, and BadInput for a wrong name."""
    with site(gpu, simulate, enforced=enforced) as place:
        yield Side(place, deadline)
