"""`python -m bench.elastic`: shares with a request and a limit, and resizes; ends with 1 if a floor breaks."""

import argparse
import tempfile
from pathlib import Path

from bench.elastic.compute import measure_compute
from bench.elastic.reclaiming import measure_reclaiming
from bench.elastic.resizing import measure_resizing
from bench.machine import add_hurry, build, machine
from bench.measures import Report, add_outputs
from bench.parts import COMPILER, Part
from bench.program import add_parts, chosen, end_with

_MEASURE = {"compute": measure_compute, "reclaiming": measure_reclaiming, "resizing": measure_resizing}
_QUICK = ("--hurry", "100")
PARTS = {
    "compute": Part(
        about="floors and caps of GPU time next to borrowers, and how fast lent time comes back",
        needs=(COMPILER,),
        smallest=_QUICK,
    ),
    "reclaiming": Part(about="how long 10 GiB of lent memory take to come back", needs=(COMPILER,), smallest=_QUICK),
    "resizing": Part(about="what a resize costs a container that works", needs=(COMPILER,), smallest=_QUICK),
}


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.elastic", description=__doc__)
    add_parts(parser, PARTS)
    add_outputs(parser)
    add_hurry(parser)
    options = parser.parse_args()
    wanted, report = chosen(parser, PARTS, options), Report("elastic")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name, machine(hurry=options.hurry) as bench:
        program = build(Path(name), "load")
        for part in wanted:
            _MEASURE[part](report, bench, program)
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
