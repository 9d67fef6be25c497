"""`python -m bench.elastic`: shares with a request and a limit, and resizes; ends with 1 if a floor breaks."""

import argparse
import tempfile
from pathlib import Path

from bench.elastic.compute import measure_compute
from bench.elastic.reclaiming import measure_reclaiming
from bench.elastic.resizing import measure_resizing
from bench.machine import build, machine
from bench.measures import Report, add_outputs
from bench.program import end_with

PARTS = {"compute": measure_compute, "reclaiming": measure_reclaiming, "resizing": measure_resizing}


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.elastic", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    add_outputs(parser)
    options = parser.parse_args()
    report = Report("elastic")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name, machine() as bench:
        program = build(Path(name), "load")
        for part in options.part or PARTS:
            PARTS[part](report, bench, program)
    return report.finish(options.json, html=options.html)


if __name__ == "__main__":
    end_with(main)
