"""`python -m tests.facade.differential.trying MINUTES` tries programs for a time, `make fuzz-programs` for an hour.

Odd seeds run under a limit that they reach, even ones under the whole GPU's memory. It prints how many programs it
tried, and ends with 1 at the first difference, which it makes small. `--seed` repeats it.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.facade.differential.generating import Generator
from tests.facade.differential.shrinking import shrink
from tests.facade.differential.traces import Replayer

LIMIT_MIB = 3000


def first_difference(replayer: Replayer, seeds: Iterable[int], *, small: bool = True) -> str:
    """Of the programs with these seeds. Empty if there is none."""
    for seed in seeds:
        program = Generator(seed).program()
        if difference := replayer.difference(program):
            if small:
                program = shrink(program, lambda smaller: replayer.difference(smaller) != "")
                difference = replayer.difference(program) or difference
            lines = "\n".join(str(operation) for operation in program)
            return f"seed {seed}: {difference}\n{lines}"
    return ""


def main() -> int:
    """Try programs for the given number of minutes."""
    parser = argparse.ArgumentParser(prog="python -m tests.facade.differential.trying", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="the first program's seed (default 1)")
    options = parser.parse_args()
    end, found, seed = time.monotonic() + options.minutes * 60, "", options.seed
    with tempfile.TemporaryDirectory(prefix="lamina-programs-") as name:
        folders = [Path(name) / "whole", Path(name) / "limited"]
        for folder in folders:
            folder.mkdir()
        replayers = [Replayer(folders[0]), Replayer(folders[1], LIMIT_MIB)]
        for seed in itertools.count(options.seed):
            if found or time.monotonic() >= end:
                break
            found = first_difference(replayers[seed % 2], [seed])
    print(f"{seed - options.seed} programs; {found or 'nothing found'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
