"""Programs that call everything in one container while its usage file fills with hostile words.

`python -m tests.facade.spoiling MINUTES` does so for a time, with another seed in each round; it prints how many cases
it tried, and ends with 1 at the first finding. `make fuzz` runs it for an hour.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.facade.built import sanitized
from tests.facade.conftest import Container, Programs, make_container

TOGETHER, CASES = 2, 3000


def spoil(box: Container, program: Path, preload: str, seed: int, cases: int) -> str:
    """Runs the programs side by side in a new container. Returns what a sanitizer found or how else they failed."""
    variables = box.environment() | {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0"}
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(
            [program, str(seed * TOGETHER + i), str(cases)],
            env=variables, text=True, stdin=pipe, stdout=pipe, stderr=pipe,
        )
        for i in range(TOGETHER)
    ]  # fmt: skip
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    findings = ""
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in running:
        said, errors = process.communicate()
        words = said.split()
        if words[:1] != ["ok"] or words[1] == "0":
            lines = [line for line in errors.splitlines() if not line.startswith("[lamina]")]
            findings += f"seed {seed}, exit code {process.returncode}: {said}" + "\n".join(lines)[:4000]
    return findings


def main() -> int:
    """Tries for so many minutes."""
    parser = argparse.ArgumentParser(prog="python -m tests.facade.spoiling", description=__doc__)
    parser.add_argument("minutes", type=float, nargs="?", default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="the first round's seed (default 1)")
    options = parser.parse_args()
    end, seed, findings = time.monotonic() + options.minutes * 60, options.seed, ""
    with tempfile.TemporaryDirectory(prefix="lamina-fuzz-") as name:
        folder = Path(name)
        preload = sanitized(folder, "cuda", "nvml")
        if preload is None:
            sys.exit("this compiler has no AddressSanitizer as a library")
        program = Programs(folder)["spoiled"]
        while time.monotonic() < end and not findings:
            (folder / str(seed)).mkdir()
            box = make_container(folder / str(seed), gpus=2, granted=(0, 1), cores=30)
            findings = spoil(box, program, preload, seed, CASES)
            seed += 1
    print(f"{(seed - options.seed) * TOGETHER * CASES} cases; {findings or 'nothing found'}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
