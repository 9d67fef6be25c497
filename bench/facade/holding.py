"""What is held over a limit while processes race for it, and how soon a killed process's memory is to be had again."""

import statistics
import subprocess
import time
from pathlib import Path

from bench.machine import CONTEXT_MIB, Bench, machine, workers
from bench.measures import Report

RACING = 16
ROOM_MIB = 1000
LIMIT_MIB = RACING * CONTEXT_MIB + ROOM_MIB
KINDS = ("plain", "managed", "async", "physical")


def measure(report: Report, hold: Path, rounds: int) -> None:
    """Races with a driver that answers at once and with one that takes 100 us, and without any limit."""
    for allocation_us in (0, 100):
        with machine(allocation_us=allocation_us) as bench:
            for kind in KINDS:
                over = max(_over_mib(hold, bench.ours(LIMIT_MIB), kind) for _ in range(rounds))
                report.add(f"held-over-limit-{kind}-{allocation_us}-us", "MiB", ours=over)
                if allocation_us:
                    unlimited = _over_mib(hold, bench.ours(), kind)
                    report.control(f"held-over-limit-{kind}-{allocation_us}-us", "MiB", ours=unlimited)
    with machine() as bench:
        after = statistics.median(_regained_ms(hold, bench) for _ in range(rounds))
        report.add("memory-back-after-kill", "ms", ours=after)


def _over_mib(hold: Path, variables: dict[str, str], kind: str) -> float:
    """The most that was ever in use, less the limit; 0 if that was less."""
    command = [str(hold), "race", kind, str(RACING)]
    said = subprocess.run(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    peak, _ = map(int, said.stdout.split())
    return max(0, peak - LIMIT_MIB)


def _regained_ms(hold: Path, bench: Bench) -> float:
    variables = bench.ours(2 * CONTEXT_MIB + ROOM_MIB)
    with workers(1, [hold, "regain"], variables) as (waiting,), workers(1, [hold, "fill"], variables) as (holder,):
        waiting.say("go")
        time.sleep(0.02)  # so that it asks in vain for a while
        killed = time.monotonic_ns()
        holder.kill()
        return (int(waiting.receive()) - killed) / 1e6
