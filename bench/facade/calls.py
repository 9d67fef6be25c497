"""Cost of single calls in nanoseconds of the calling thread's CPU time."""

import re
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.machine import ROOT, Bench, Worker, soon, workers
from bench.measures import Report, alternate
from lamina.core.grants import ComputePolicy

SPAN = 0.02
NAMES_APART = 50
"""In the smallest form, every 50th name is looked up."""
LIVE = (0, 100, 1_000, 10_000)
CHEAP = ("memory-info", "nvml-memory", "current", "attribute", "copy")
_ROW = re.compile(r"^(?:HOOK|PASS|FORBID)\(", re.MULTILINE)
KINDS = ("plain", "small", "async", "pool", "physical")


def up_to(most: int | None, counts: Sequence[int]) -> list[int]:
    """Those of the counts that are not larger."""
    return [count for count in counts if most is None or count <= most]


def ask(
    group: list[Worker], call: str, *, live: int = 0, threads: int = 1, span: float = SPAN
) -> list[tuple[int, int]]:
    """Operations and CPU ns of each process, while all of the group call at once for a span of seconds."""
    start = soon()
    for worker in group:
        worker.say(f"{call} {live} {threads} {start} {start + int(span * 1e9)}")
    answers = [worker.receive().split() for worker in group]
    return [(int(operations), int(cpu_ns)) for operations, cpu_ns in answers]


def cost(group: list[Worker], call: str, *, live: int = 0, threads: int = 1, span: float = SPAN) -> float:
    """CPU ns of one call while all of the group call at once."""
    answers = ask(group, call, live=live, threads=threads, span=span)
    return sum(cpu_ns for _, cpu_ns in answers) / sum(operations for operations, _ in answers)


@contextmanager
def sides(
    program: Path, bench: Bench, count: int = 1, *, cores: int = 0, policy: ComputePolicy = ComputePolicy.NONE
) -> Iterator[dict[str, list[Worker]]]:
    """So many processes without the facade, and as many in one container."""
    held = bench.ours(cores=cores, policy=policy)
    with (
        workers(count, [program, bench.kernels], bench.native()) as plain,
        workers(count, [program, bench.kernels], held) as ours,
    ):
        yield {"native": plain, "ours": ours}


def compare(
    groups: dict[str, list[Worker]], rounds: int, call: str, *, span: float, live: int = 0, threads: int = 1
) -> dict[str, float]:
    """Medians of native and ours."""

    def one(group: list[Worker]) -> float:
        return cost(group, call, live=live, threads=threads, span=span)

    for group in groups.values():  # makes what is held meanwhile, and fills caches
        one(group)
    return alternate(rounds, {side: lambda group=group: one(group) for side, group in groups.items()})


def names() -> int:
    """How many names the facade's table has."""
    return len(_ROW.findall((ROOT / "native/facade/generated/cuda_table.h").read_text()))


def look_up_all(report: Report, groups: dict[str, list[Worker]], rounds: int, every: int, span: float) -> None:
    """cuGetProcAddress for each name: the median, and the one to which the facade adds most."""
    found = [compare(groups, rounds, "proc-address", span=span, live=number) for number in range(0, names(), every)]
    report.add("proc-address", "ns", **{side: statistics.median(each[side] for each in found) for side in groups})
    report.add("proc-address-worst", "ns", **max(found, key=lambda each: each["ours"] - each["native"]))


def measure(report: Report, program: Path, bench: Bench, rounds: int, most: int | None) -> None:
    """All single calls."""
    span = SPAN / bench.hurry
    with sides(program, bench) as groups:
        report.add("launch", "ns", **compare(groups, rounds, "launch", span=span))
        for call in CHEAP:
            report.add(call, "ns", **compare(groups, rounds, call, span=span))
        look_up_all(report, groups, rounds, 1 if most is None else NAMES_APART, span / 10)
        for kind in KINDS:
            for live in up_to(most, LIVE):
                report.add(f"{kind}-{live}-live", "ns", **compare(groups, rounds, kind, span=span, live=live))
        # The pools keep unused memory until the program waits for the GPU: each query must ask about it.
        report.add("memory-info-after-pools", "ns", **compare(groups, rounds, "memory-info", span=span))
    limit = {"cores": 50, "policy": ComputePolicy.CAP}  # empty kernels do not use it up, so no launch may wait
    with sides(program, bench, **limit) as groups:
        report.add("launch-limited", "ns", **compare(groups, rounds, "launch", span=span))
        report.add("launch-limited-4-threads", "ns", **compare(groups, rounds, "launch", span=span, threads=4))
    with sides(program, bench, 4, **limit) as groups:
        report.add("launch-limited-4-processes", "ns", **compare(groups, rounds, "launch", span=span))
