"""A side of the comparison: the card or a simulated one, and what it answers to rows."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.compute.runs import arbitrated
from bench.gpu import programs
from bench.gpu.answers import Facts, facts
from bench.gpu.mps_daemon import client_limits, mps_daemon
from bench.gpu.rows import RATE, Row
from bench.gpu.turns import ROUNDS, added, at_once, in_turns, number_of, slowed
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
        self._natives: dict[str, float] = {}
        self.about: Facts = self._once(_probe("calibration"), self.place.free(), 30.0)

    def ask(self, row: Row) -> Facts:
        """The facts of a row. Raises Outside, with the reason, where there are none."""
        if row.nested and subprocess.run([*self._nested(), "true"], capture_output=True, check=False).returncode != 0:
            raise Outside("not tested: this machine lets no one make PID namespaces")
        needed = "" if self._is_simulated(row) else row.needs
        if needed and (why := programs.import_error(needed)):
            raise Outside(f"not tested: {needed} cannot be imported: {why}")
        if row.needed_mib > (had := self._memory_mib(row)):
            raise Outside(f"not tested: it needs {row.needed_mib:,} MiB, and a share has {had:,} MiB")
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
        variables = self.place.free() if row.way == "free" else self._held(row, row.cores[0])
        return self._row(row, {**variables, **connected, **self._client_limits(row)})

    def _nested(self) -> tuple[str, ...]:
        """NVIDIA's driver needs the /proc of the namespace, and simgpu that of the machine."""
        return NESTED if self.place.simulated else (*NESTED, "--mount-proc")

    def _is_simulated(self, row: Row) -> bool:
        return bool(row.simulated_probe) and self.place.simulated

    def _memory_mib(self, row: Row) -> int:
        """Of one of the row's processes."""
        return int(self.place.gpu.memory_mib * row.memory_percent / 100) or row.memory_mib or self.place.gpu.memory_mib

    def _held(self, row: Row, cores: int) -> dict[str, str]:
        """The environment of one of the row's processes in a container of its own."""
        physical_mib = int(self.place.gpu.memory_mib * row.physical_percent / 100)
        policy = ComputePolicy.THREADS if row.mps else ComputePolicy.CAP
        return self.place.held(self._memory_mib(row), cores=cores, policy=policy, physical_mib=physical_mib)

    def _client_limits(self, row: Row) -> dict[str, str]:
        return client_limits(self.place.gpu.uuid, row.memory_mib, row.cores[0]) if row.mps else {}

    def _row(self, row: Row, variables: Mapping[str, str]) -> Facts:
        prefix = self._nested() if row.nested else ()
        return self._once(self._command(row), variables, row.limit_s, prefix)

    def _command(self, row: Row) -> list[str]:
        words = [str(self.about["rate"]) if word == RATE else word for word in row.arguments]
        return _probe(row.simulated_probe if self._is_simulated(row) else row.probe, *words)

    def _once(
        self, command: Sequence[str], variables: Mapping[str, str], seconds: float, prefix: tuple[str, ...] = ()
    ) -> Facts:
        allowed = self._deadline.allows(seconds)
        return facts(*programs.output(programs.start([*prefix, *command], variables), allowed))

    def _at_once(self, row: Row) -> Facts:
        """Programs that run at the same time, with the agent's decisions about them if they have limits."""
        allowed = self._deadline.allows(row.limit_s)
        free = row.way == "free"
        native = self._native(row)
        with ExitStack() as stack:
            places = [self.place.free() if free else self._held(row, cores) for cores in row.cores]
            if self.place.enforced and not free:
                stack.enter_context(arbitrated([Path(variables["LAMINA_DIR"]) for variables in places]))
            answers = at_once(self._command(row), places, allowed)
        found: Facts = {}
        for number, (cores, answer) in enumerate(zip(row.cores, answers, strict=True), 1):
            name = f"share of {cores} %, number {number}" if cores else f"program {number}"
            value = next(iter(answer.values()))
            found[name] = 100 * native / number_of(value) if native else value
        return found

    def _native(self, row: Row) -> float:
        """The native time that the speed of the row is compared with; 0 where it is not."""
        if row.native and row.native not in self._natives:
            raise Outside(f"not tested: there is no native time, because {row.native!r} has none")
        return self._natives.get(row.native, 0.0)

    def _in_turns(self, row: Row, connected: Mapping[str, str]) -> Facts:
        """The facts of programs without and with the facade, next to each other."""
        pairs, rounds = (row.pairs, ROUNDS) if row.way == "both" else (1, 1)
        seconds = self._deadline.allows(row.limit_s)
        free = {**self.place.free(), **connected}
        held = {**self._held(row, row.cores[0]), **connected, **self._client_limits(row)}
        native, ours = in_turns(self._command(row), free, held, seconds, pairs, rounds)
        self._natives[row.name] = min(number_of(next(iter(each.values()))) for each in native)
        return added(native, ours) if row.way == "both" else slowed(native, ours)


def _probe(name: str, *arguments: str) -> list[str]:
    return programs.python(f"bench.gpu.probes.{name}", *arguments)


@contextmanager
def side(gpu: str, simulate: str | None, deadline: Deadline, *, enforced: bool = True) -> Iterator[Side]:
    """The GPU of this machine, or a simulated one. Raises Outside without one, and BadInput for a wrong name."""
    with site(gpu, simulate, enforced=enforced) as place:
        yield Side(place, deadline)
