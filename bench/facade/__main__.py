"""`python -m bench.facade`: prints the table, writes the file, ends with 1 when a floor is broken."""

import argparse
import tempfile
from pathlib import Path

from bench.facade import calls, holding, instructions, starting, together
from bench.machine import build, machine
from bench.measures import Report, add_outputs
from bench.program import end_with

PARTS = ("calls", "together", "starting", "holding", "instructions")


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.facade", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to run: {', '.join(PARTS)} (default all)")
    add_outputs(parser)
    parser.add_argument("--rounds", type=int, default=15, help="alternated rounds of each comparison (default 15)")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    wanted = options.parts or PARTS
    report = Report("facade")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder, machine() as bench:
        program = {name: build(Path(folder), name) for name in ("calls", "start", "hold")}
        if "calls" in wanted:
            calls.measure(report, program["calls"], bench, options.rounds)
        if "together" in wanted:
            together.measure(report, program["calls"], program["start"], bench, options.rounds)
        if "starting" in wanted:
            starting.measure(report, program["start"], bench, options.rounds)
        if "holding" in wanted:
            holding.measure(report, program["hold"], options.rounds)
        note = instructions.measure(report, program["calls"], bench) if "instructions" in wanted else ""
    status = report.finish(options.json, html=options.html)
    if note:
        print(note)
    return status


if __name__ == "__main__":
    end_with(main)
