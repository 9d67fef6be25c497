"""Programs that are asked again and again: in turns, one without the facade and one with it, or all at once.

Two in turns are started together and then asked one after the other, so that what the machine does meanwhile meets
both alike. Programs of the same kind differ in speed from start to start, so several pairs of them are asked.
"""

import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Timer

from bench.gpu import programs
from bench.gpu.answers import Facts, facts
from lamina.errors import Outside

ROUNDS = 4


def in_turns(
    command: Sequence[str], native: Mapping[str, str], held: Mapping[str, str], seconds: float, pairs: int, rounds: int
) -> tuple[list[Facts], list[Facts]]:
    """The facts of all rounds: native ones, and those with the facade. Every start and round has so many seconds.

    Raises Outside when a program does not answer.
    """
    ours: tuple[list[Facts], list[Facts]] = ([], [])
    for _ in range(pairs):
        with _started(command, native) as first, _started(command, held) as second:
            for program in (first, second):
                _await_ready(program, seconds)
            for _ in range(rounds):
                for found, program in zip(ours, (first, second), strict=True):
                    _ask(program)
                    found.append(_answer(program, seconds))
    return ours


def at_once(command: Sequence[str], sides: Sequence[Mapping[str, str]], seconds: float) -> list[Facts]:
    """The facts of one program for each environment. All are asked when the last one is ready, so that none has the
    GPU alone because it started first. Raises Outside when one does not answer."""
    with ExitStack() as stack:
        started = [stack.enter_context(_started(command, variables)) for variables in sides]
        for program in started:
            _await_ready(program, seconds)
        for program in started:
            _ask(program)
        return [_answer(program, seconds) for program in started]


@contextmanager
def _started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator["subprocess.Popen[str]"]:
    program = programs.start(command, variables)
    try:
        yield program
    finally:
        programs.end(program)


def _await_ready(program: "subprocess.Popen[str]", seconds: float) -> None:
    if (said := _line(program, seconds)) != programs.READY:
        code, rest = programs.output(program, seconds)
        raise Outside(f"it ended with {code}: {programs.last_line(rest or said)}")


def _ask(program: "subprocess.Popen[str]") -> None:
    assert program.stdin is not None
    with suppress(BrokenPipeError):
        program.stdin.write(programs.ASK)
        program.stdin.flush()


def _answer(program: "subprocess.Popen[str]", seconds: float) -> Facts:
    said = _line(program, seconds)
    return facts(0, said) if said else facts(*programs.output(program, seconds))


def _line(program: "subprocess.Popen[str]", seconds: float) -> str:
    """The next line of a program, or nothing where it ended. Raises Outside when none comes in time."""
    assert program.stdout is not None
    late = Event()
    timer = Timer(seconds, _give_up, (program, late))
    timer.start()
    try:
        said = program.stdout.readline()
    finally:
        timer.cancel()
    if late.is_set():
        raise Outside(f"it did not answer within {seconds:.0f} s")
    return said


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
        yield name, [(number_of(a[name]), number_of(b[name])) for a, b in zip(native, ours, strict=True)]


def number_of(value: object) -> float:
    """The value of a fact that has to be a number. Raises Outside where it is none."""
    if not isinstance(value, int | float):
        raise Outside(f"it said {value!r} where a number was expected")
    return float(value)
