"""The C program that computes charges and bins of GPU time."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.building import SANITIZED, compile_program

Program = "subprocess.Popen[str]"


@contextmanager
def bucket_program(folder: Path) -> Iterator[Program]:
    """native/tests/bucket.c, to be asked line by line."""
    names = ("bucket", "estimate", "launch_window")
    sources = ["native/tests/bucket.c", *(f"native/facade/compute/{name}.c" for name in names)]
    program = compile_program(folder, "bucket", sources, *SANITIZED)
    pipe = subprocess.PIPE
    with subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: Program, *words: object) -> list[int]:
    process.stdin.write(" ".join(map(str, words)) + "\n")
    return list(map(int, process.stdout.readline().split()))
