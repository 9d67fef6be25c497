"""How many instructions a path takes, counted by valgrind: a figure that does not drift with the machine."""

import re
import subprocess
from pathlib import Path

from bench.machine import Bench
from bench.measures import Report
from lamina.core.grants import ComputePolicy

CALLS = ("launch", "plain", "small", "async", "physical", "memory-info")
FEW = 1_000


def measure(report: Report, calls: Path, bench: Bench, count: int) -> None:
    """Instructions over so many calls."""
    for call in CALLS:
        native, ours = (
            _each([calls, bench.kernels, call], count, bench.native()),
            _each([calls, bench.kernels, call], count, bench.ours()),
        )
        report.add(f"{call}-instructions", "1", native=native, ours=ours)
    limited = _each([calls, bench.kernels, "launch"], count, bench.ours(cores=50, policy=ComputePolicy.CAP))
    report.add(
        "launch-limited-instructions",
        "1",
        native=_each([calls, bench.kernels, "launch"], count, bench.native()),
        ours=limited,
    )


def _each(command: list[str | Path], count: int, variables: dict[str, str]) -> float:
    """Instructions of one call: what more calls cost more, so that starting does not count."""
    counts = [_counted([*map(str, command), str(operations)], variables) for operations in (FEW, FEW + count)]
    return (counts[1] - counts[0]) / count


def _counted(command: list[str], variables: dict[str, str]) -> int:
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*tool, *command], env=variables, capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"valgrind gave no count: {done.stderr[-300:]}")
    return int(found[1])
