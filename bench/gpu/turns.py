"""Two programs in turns: one without the facade and one with it.

Both are started together and then asked one after the other, so that what the machine does meanwhile meets both alike.
Programs of the same kind differ in speed from start to start, so several pairs of them are asked.
"""

import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Timer

from bench.gpu import programs
from bench.gpu.answers import Facts, facts
from lamina.errors import Outside

PAIRS, ROUNDS = 3, 4


def in_turns(
    command: Sequence[str], native: Mapping[str, str], held: Mapping[str, str], seconds: float, pairs: int, rounds: int
) -> tuple[list[Facts], list[Facts]]:
    """The facts of all rounds: native ones, and those with the facade. Every start and round has so many seconds.

    Raises Outside when a program does not answer.
    """
    ours: tuple[list[Facts], list[Facts]] = ([], [])
    for _ in range(pairs):
        with _started(command, native) as first, _started(command, held) as second:
            for _ in range(rounds):
                for found, program in zip(ours, (first, second), strict=True):
                    found.append(_ask(program, seconds))
    return ours


@contextmanager
def _started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    program = programs.start(command, variables, asked=True)
    try:
        yield program
    finally:
        programs.end(program)


def _ask(program: "subprocess.Popen[str]", seconds: float) -> Facts:
    assert program.stdin is not None and program.stdout is not None
    late = Event()
    timer = Timer(seconds, _give_up, (program, late))
    timer.start()
    try:
        with suppress(BrokenPipeError):
            program.stdin.write("\n")
            program.stdin.flush()
        said = program.stdout.readline()
    finally:
        timer.cancel()
    if late.is_set():
        raise Outside(f"it did not answer within {seconds:.0f} s")
    return facts(0, said) if said else facts(*programs.output(program, seconds))


def _give_up(program: "subprocess.Popen[str]", late: Event) -> None:
    late.set()
    programs.kill(program)


def slowed(native: list[Facts], ours: list[Facts]) -> Facts:
    """The least native times, and which part of the native speed is left under a limit, in percent."""
    found: Facts = {}
    for name, pairs in _paired(native, ours):
        found[f"{name}, native us"] = min(a for a, _ in pairs)
        found[f"{name}, part of the native speed"] = statistics.median(100 * a / b for a, b in pairs)
    return found


def added(native: list[Facts], ours: list[Facts]) -> Facts:
    """What rounds with the facade took more than the rounds without it just before: of each fact the least native
    figure, and the medians of what was added, in the unit of the probe and in percent."""
    found: Facts = {}
    for name, pairs in _paired(native, ours):
        found[f"{name}, native us"] = min(a for a, _ in pairs)
        found[f"{name}, added us"] = statistics.median(b - a for a, b in pairs)
        found[f"{name}, added"] = statistics.median(100 * (b - a) / a for a, b in pairs)
    return found


def _paired(native: list[Facts], ours: list[Facts]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    for name in native[0]:
        yield name, [(_number(a[name]), _number(b[name])) for a, b in zip(native, ours, strict=True)]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
