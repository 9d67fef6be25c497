"""Programs of the test: each in a process group of its own, which ends when its time is over."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from lamina.errors import Outside

ROOT = Path(__file__).resolve().parents[2]
READY, ASK = "ready\n", "\n"
"""What a probe that is asked again and again says first, and what asks it."""


def start(command: Sequence[str], variables: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Starts a program from the root of the checkout, where it finds the probes."""
    pipe, path = subprocess.PIPE, f"{ROOT}:{variables.get('PYTHONPATH', '')}".rstrip(":")
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**variables, "PYTHONPATH": path},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    )


def python(module: str, *arguments: str) -> list[str]:
    """The command for a module with this Python."""
    return [sys.executable, "-m", module, *arguments]


def output(program: "subprocess.Popen[str]", seconds: float) -> tuple[int, str]:
    """The exit code and what the program said, asked once. Raises Outside when it does not end in time."""
    try:
        said, wrong = program.communicate(ASK, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise Outside(f"it did not end within {seconds:.0f} s") from late
    finally:
        end(program)
    return program.returncode, said if program.returncode == 0 else wrong or said


def end(program: "subprocess.Popen[str]") -> None:
    """Ends a program and all that it started."""
    kill(program)
    program.communicate()


def kill(program: "subprocess.Popen[str]") -> None:
    """Kills a program and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)


@cache
def import_error(module: str) -> str:
    """Why this Python cannot import a module, or nothing where it can."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else last_line(done.stderr)


def last_line(text: str) -> str:
    """What a program said last, shortened."""
    lines = text.strip().splitlines() or ["nothing"]
    return lines[-1][:200]


def variables() -> dict[str, str]:
    """The environment of this process, for a program that prepares its own children."""
    return dict(os.environ)
