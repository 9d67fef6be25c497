"""The tests of this folder with other seeds for a time: `python -m tests.hostile_objects.trying MINUTES`.

It prints each seed before it is tried, and how to repeat a seed that finds something, and ends with 1 then.
`make fuzz-objects` tries for an hour.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.hostile_objects.objects import COUNT, FIRST

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def command(seed: int) -> str:
    """What repeats a seed."""
    return f"{FIRST}={seed} {COUNT}=1 {sys.executable} -m pytest {FOLDER.relative_to(ROOT)}"


def found(seed: int) -> str:
    """What the tests report with this seed, empty where they pass."""
    environment = os.environ | {FIRST: str(seed), COUNT: "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout[-20_000:] if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile_objects.trying", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed; those after it follow in order (default: random)")
    options = parser.parse_args()
    first = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    end, seed, report = time.monotonic() + options.minutes * 60, first, ""
    while not report and (seed == first or time.monotonic() < end):
        print(f"seed {seed}", flush=True)
        report = found(seed)
        seed += 1
    if report:
        print(report)
        print(f"seed {seed - 1} found this; repeat it with: {command(seed - 1)}")
    else:
        print(f"{seed - first} seeds from {first}; nothing found")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
