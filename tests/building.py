"""C programs for the tests, compiled when they are needed."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
INCLUDES = ("-Inative/include", "-Inative/facade", "-Ilab/native/include")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DLAMINA_ASSERTIONS")


def compile_program(folder: Path, name: str, sources: list[str], *flags: str) -> Path:
    """The program of these sources (paths from the root of the tree)."""
    program = folder / name
    compiler = os.environ.get("CC", "cc")
    command = [compiler, *FLAGS, *INCLUDES, *sources, "-o", str(program), *flags, "-lpthread", "-ldl"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def needs_static_libc() -> None:
    """Skips the test where static programs cannot be linked."""
    command = [os.environ.get("CC", "cc"), "-static", "-x", "c", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input="int main(void) { return 0; }", text=True, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("this machine has no static C library")
