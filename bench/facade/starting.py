"""What starting costs: cuInit, whole processes, and many that make a slow context at one moment.

Times are elapsed, of the round that other work on the machine disturbed least.
"""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.facade.calls import up_to
from bench.machine import CONTEXT_MIB, Bench, machine, soon, workers
from bench.measures import Report, alternate

CONTEXT_US = 100_000
MAX_ROUNDS = 7
"""Of many at once."""
AT_ONCE = (1, 4, 16, 64)
FIRST_AT_ONCE = (16, 64)


def measure(report: Report, start: Path, bench: Bench, rounds: int, most: int | None) -> None:
    """One process, then many at once."""
    sides = {"native": bench.native(), "ours": bench.ours()}

    def both(once, *arguments: object) -> dict[str, float]:
        return alternate(rounds, {side: lambda env=env: once(env, *arguments) for side, env in sides.items()}, min)

    report.add("cu-init", "us", **both(_init_us, start))
    report.add("spawn-to-exit", "us", **both(_spawn_us, [str(start), "init"]))
    report.add("bin-true", "us", **both(_spawn_us, ["/bin/true"]))
    with machine(context_us=CONTEXT_US) as slow:
        for count in up_to(most, AT_ONCE):
            _at_once(report, start, slow, count, min(rounds, MAX_ROUNDS))
        for count in up_to(most, FIRST_AT_ONCE):
            _at_once(report, start, slow, count, min(rounds, MAX_ROUNDS), first=True)


def _init_us(env: dict[str, str], start: Path) -> float:
    done = subprocess.run([start, "init"], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout) / 1e3


def _spawn_us(env: dict[str, str], command: Sequence[str]) -> float:
    silent = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    before = time.perf_counter_ns()
    child = os.posix_spawn(command[0], command, env, file_actions=silent)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise RuntimeError(f"{command} ended with {status}")
    return (time.perf_counter_ns() - before) / 1e3


def _at_once(report: Report, start: Path, slow: Bench, count: int, rounds: int, *, first: bool = False) -> None:
    """With `first` it is not known what a context costs, because the container is the first one on its GPU."""
    made: dict[str, list[int]] = {"native": [], "ours": []}

    def last_ready_ms(side: str) -> float:
        variables = slow.native() if side == "native" else slow.ours(context_mib=0 if first else CONTEXT_MIB)
        before = slow.state().contexts_made
        with workers(count, [start, "ready"], variables) as group:
            moment = soon(0.02)
            for worker in group:
                worker.say(str(moment))
            ready = max(int(worker.receive()) for worker in group)
        made[side].append(slow.state().contexts_made - before)
        return (ready - moment) / 1e6

    times = alternate(rounds, {side: lambda side=side: last_ready_ms(side) for side in made}, min)
    report.add(f"last-of-{count}-ready{'-first' if first else ''}", "ms", **times)
    if count == 1 and not first:
        report.add("contexts-made", "per process", native=max(made["native"]), ours=max(made["ours"]))
