"""Every check of the project, one after the other: lint, format, types, import contract, then all tests.

Run as `python -m tests.run`; further arguments go to pytest. All checks run even when one fails, so that one run
tells everything; the exit code is that of the first failure. Files of tests run side by side; `-n 0` runs them in turn.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent

C_TREES = ("native", "lab/native", "tests")
C_FILES = sorted(str(path.relative_to(ROOT)) for tree in C_TREES for path in (ROOT / tree).rglob("*.[ch]"))

CHECKS = (
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("types", [str(BIN / "mypy")]),
    ("imports", [str(BIN / "lint-imports")]),
    ("C style", [str(BIN / "clang-format"), "--dry-run", "--Werror", *C_FILES]),
)

# Two on each core, as tests of labs mostly wait for other processes; each collects all tests, so that many do not help.
SIDE_BY_SIDE = min(8, 2 * len(os.sched_getaffinity(0)))
# The order of files is that of tests/conftest.py, not by how many tests there are in each.
PYTEST = [
    *(sys.executable, "-m", "pytest", "-n", str(SIDE_BY_SIDE), "--dist", "loadfile", "--no-loadscope-reorder"),
    *("--durations=40", "--durations-min=10"),
]


def run(name: str, command: list[str]) -> int:
    print(f"--- {name}", flush=True)
    began = time.monotonic()
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    code = subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode
    print(f"--- {name}: {'ok' if code == 0 else f'failed ({code})'} in {time.monotonic() - began:.1f} s", flush=True)
    return code


def main() -> int:
    codes = [run(name, command) for name, command in CHECKS]
    failed = [name for (name, _), code in zip(CHECKS, codes, strict=True) if code != 0]
    # pytest comes last, so that its summary is what a reader of the log meets first.
    print(f"--- tests (failed before: {', '.join(failed) or 'nothing'})", flush=True)
    codes.append(subprocess.run([*PYTEST, *sys.argv[1:]], cwd=ROOT, check=False).returncode)
    return next((code for code in codes if code != 0), 0)


if __name__ == "__main__":
    sys.exit(main())
