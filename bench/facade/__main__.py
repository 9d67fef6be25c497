"""`python -m bench.facade`: prints the table, writes the file, ends with 1 when a floor is broken."""

import argparse
import tempfile
from functools import cache
from pathlib import Path

from bench.facade import calls, holding, instructions, starting, together
from bench.machine import add_hurry, build, machine
from bench.measures import Report, add_outputs
from bench.parts import COMPILER, Part, program
from bench.program import add_parts, chosen, end_with

_QUICK = ("--rounds", "1", "--hurry", "100", "--most", "4")
PARTS = {
    "calls": Part(
        about="cost of single calls, by threads, processes and blocks held", needs=(COMPILER,), smallest=_QUICK
    ),
    "together": Part(about="what many processes lose to each other", needs=(COMPILER,), smallest=_QUICK),
    "starting": Part(about="cuInit, whole processes, many that start at once", needs=(COMPILER,), smallest=_QUICK),
    "holding": Part(
        about="what is held over a limit, and how soon a dead process's memory is back",
        needs=(COMPILER,),
        smallest=_QUICK,
    ),
    "instructions": Part(
        about="how many instructions a path takes, which does not drift with the machine",
        needs=(COMPILER, program("valgrind", "valgrind")),
        smallest=("--calls", "100"),
    ),
}


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.facade", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    add_hurry(parser)
    parser.add_argument("--rounds", type=int, default=15, help="alternated rounds of each comparison (default 15)")
    parser.add_argument("--most", type=int, help="leave out comparisons with more processes or blocks than this")
    parser.add_argument("--calls", type=int, default=10_000, help="calls whose instructions count (default 10000)")
    options = parser.parse_args()
    wanted, report = chosen(parser, PARTS, options), Report("facade")
    rounds, most = options.rounds, options.most
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder, machine(hurry=options.hurry) as bench:
        built = cache(lambda name: build(Path(folder), name))
        if "calls" in wanted:
            calls.measure(report, built("calls"), bench, rounds, most)
        if "together" in wanted:
            together.measure(report, built("calls"), built("start"), bench, rounds, most)
        if "starting" in wanted:
            starting.measure(report, built("start"), bench, rounds, most)
        if "holding" in wanted:
            holding.measure(report, built("hold"), rounds)
        if "instructions" in wanted:
            instructions.measure(report, built("calls"), bench, options.calls)
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
