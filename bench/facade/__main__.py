"""`python -m bench.facade`: prints the table, writes the file, ends with 1 when a floor is broken."""

import argparse
import sys
import tempfile
from pathlib import Path

from bench.facade import calls
from bench.machine import build, machine
from bench.measures import Report


def main() -> int:
    """Runs all parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench.facade", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the measures to this file")
    parser.add_argument("--rounds", type=int, default=21, help="alternated rounds of each comparison (default 21)")
    options = parser.parse_args()
    report = Report("facade")
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as name, machine() as bench:
        programs = Path(name)
        calls.measure(report, build(programs, "calls"), bench, options.rounds)
    return report.finish(options.json)


sys.exit(main())
