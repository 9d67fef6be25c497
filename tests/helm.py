"""A real helm for tests: the one that LAMINA_HELM names, else the one on PATH."""

import os
import shutil
import subprocess

import pytest


def find_helm() -> str:
    """The path of a helm; skips the test where there is none."""
    found = os.environ.get("LAMINA_HELM") or shutil.which("helm")
    if found is None:
        pytest.skip("no helm: put one on PATH, or name one in LAMINA_HELM")
    return found


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """What a helm without a cluster answers."""
    return subprocess.run([find_helm(), *arguments], capture_output=True, text=True, check=False, timeout=60)
