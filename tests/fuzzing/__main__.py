"""Tries the targets by coverage, each for an equal part of a time: `python -m tests.fuzzing MINUTES [TARGET ...]`.

It ends with 1 at the first finding, and libFuzzer has written the input to a file then; `python -m tests.fuzzing.one
TARGET FILE` repeats it. `make fuzz-texts` tries for an hour.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.building import ROOT
from tests.fuzzing.seeds import seeds
from tests.fuzzing.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=60, help="how long (default 60)")
    parser.add_argument("targets", nargs="*", help=f"some of {', '.join(TARGETS)} (default: all)")
    options = parser.parse_args()
    if unknown := sorted(set(options.targets) - TARGETS.keys()):
        parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    targets = options.targets or list(TARGETS)
    for target in targets:
        with tempfile.TemporaryDirectory(prefix="lamina-fuzz-") as corpus:
            for number, seed in enumerate(seeds(target)):
                (Path(corpus) / str(number)).write_bytes(seed)
            seconds = max(1, round(options.minutes * 60 / len(targets)))
            arguments = [target, corpus, f"-max_total_time={seconds}", f"-artifact_prefix=fuzz-{target}-"]
            command = [sys.executable, "-m", "tests.fuzzing.one", *arguments]
            if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
