"""Rows of 4paradigm's benchmark: networks alone, two and four at once, with limits and without, and with more memory
than the GPU has.

Without limits, programs at once are what NVIDIA's plugin makes of replicas: time slices of the driver.
"""

from collections.abc import Iterator

from bench.gpu.networks import CASES, Case, blocks_bytes
from bench.gpu.rows import RATE, Fact, Row

PART = "networks"
SECONDS = "1"
LEAST_PART = 0.85
"""Of its share, of the part of what programs without limits get together."""
OWN_MIB, ALLOCATED = 1024, 2.0
"""What a program of PyTorch needs beyond its blocks, and how much its allocator and its workspaces take for each."""
OVERCOMMITTED_PERCENT, FILLED_PERCENT = 75.0, 85.0
"""Of two programs, each sees so much of the GPU's memory and holds so much of what it sees: 128 % of the GPU's."""


def _row(case: Case, how: str, facts: tuple[Fact, ...], **kind: object) -> Row:
    needed = int(OWN_MIB + ALLOCATED * sum(blocks_bytes(case)) / (1 << 20))
    filled = f"{FILLED_PERCENT:g}" if "physical_percent" in kind else "0"
    return Row(part=PART, name=f"{case.name}{how}", probe="network_torch", simulated_probe="network_shapes",
               arguments=(case.name, SECONDS, RATE, filled), facts=facts, needs="torch", needed_mib=needed,
               limit_s=180.0, **kind)  # fmt: skip


def _reported(name: str) -> Fact:
    return Fact(name, "%", within=None)


def _rows(case: Case) -> Iterator[Row]:
    times = (Fact(f"a step, {what} us", "us", within=None) for what in ("native", "added"))
    alone = _row(case, "", (Fact("a step, added", "%", within=None, most=2), *times), way="both", pairs=1)
    yield alone
    for programs in (2, 4):
        cores, memory = 100 // programs, 100.0 / programs
        unlimited = _row(case, f", {programs} at once without limits",
                         tuple(_reported(f"program {number}") for number in range(1, programs + 1)),
                         cores=(0,) * programs, memory_percent=memory, native=alone.name)  # fmt: skip
        yield unlimited
        least = tuple(Fact(f"share of {cores} %, number {number}", "%", within=None, least=LEAST_PART * cores)
                      for number in range(1, programs + 1))  # fmt: skip
        yield _row(case, f", {programs} at once, {cores} % each", least, way="held", cores=(cores,) * programs,
                   memory_percent=memory, native=alone.name, after=unlimited.name)  # fmt: skip
    beyond = tuple(_reported(f"program {number}") for number in (1, 2))
    yield _row(case, ", 2 at once, more memory than the GPU has", beyond, way="held", cores=(0, 0),
               memory_percent=OVERCOMMITTED_PERCENT, physical_percent=50.0, native=alone.name)  # fmt: skip


NETWORK_ROWS = tuple(row for case in CASES.values() for row in _rows(case))
