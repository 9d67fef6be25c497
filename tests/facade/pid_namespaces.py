"""Programs of a container in PID namespaces of their own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.facade.conftest import PRELUDE, Container

NESTED = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_nest() -> bool:
    try:
        return subprocess.run([*NESTED, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def running(box: Container, script: str, *prefix: str) -> Iterator["subprocess.Popen[str]"]:
    process = box.start(*prefix, sys.executable, "-c", PRELUDE + script)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: "subprocess.Popen[str]", say: str | None = None) -> str:
    assert process.stdin is not None and process.stdout is not None
    if say is not None:
        process.stdin.write(say + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()
