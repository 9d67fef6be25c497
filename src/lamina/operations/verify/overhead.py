"""What the facade adds to a call, compared with the same calls without it, in alternating rounds."""

import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from lamina import native
from lamina.errors import LaminaError, Outside
from lamina.operations.gpu_load import KERNELS
from lamina.operations.verify.machine import Site
from lamina.operations.verify.report import CheckResult, untested

CALLS = {"launch": "cuLaunchKernel", "plain": "cuMemAlloc and cuMemFree", "memory-info": "cuMemGetInfo"}
SPAN_NS = 20_000_000
SOON_NS = 5_000_000


def overhead(site: Site, rounds: int) -> Iterator[CheckResult]:
    """Nanoseconds of CPU time per call: `limit` is without the facade, `measured` with it, and nothing is judged."""
    try:
        program, kernels = str(native.path("verify/calls")), site.folder / "kernels.ptx"
        kernels.write_bytes(KERNELS)
        sides = [_start(program, kernels, variables) for variables in (site.free(), site.held())]
    except LaminaError as failed:
        yield untested("overhead", "calls", str(failed))
        return
    try:
        for call, name in CALLS.items():
            taken: list[list[float]] = [[], []]
            for _ in range(rounds):
                for side, figures in zip(sides, taken, strict=True):
                    figures.append(_cost(side, call))
            without, with_facade = map(statistics.median, taken)
            yield CheckResult(
                check="overhead", what=name, limit=without, measured=with_facade, unit="ns", verdict="reported",
                note="limit is the figure without Lamina",
            )  # fmt: skip
    except (Outside, OSError) as failed:
        yield untested("overhead", "calls", str(failed))
    finally:
        for side in sides:
            side.kill()
            side.communicate()


def _start(program: str, kernels: Path, variables: dict[str, str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [program, str(kernels)]
    started = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)
    if (line := _line(started)) != "ready":
        started.kill()
        raise Outside(f"a program under test failed: {line}")
    return started


def _line(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def _cost(program: "subprocess.Popen[str]", call: str) -> float:
    assert program.stdin is not None
    start = time.monotonic_ns() + SOON_NS
    program.stdin.write(f"{call} 0 1 {start} {start + SPAN_NS}\n")
    words = _line(program).split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise Outside(f"a program under test failed: {' '.join(words)}")
    return int(words[1]) / int(words[0])
