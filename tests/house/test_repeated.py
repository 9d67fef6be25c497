"""What counts when tests that failed are run again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = """
import os, pytest

def test_one():
    match os.environ["DOES"]:
        case "fails": assert False
        case "skips": pytest.skip("nothing to see")

def test_other():
    pytest.skip("as before")
"""


def run(folder: Path, does: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.repeated", "--rootdir=.", "-c", os.devnull, *options]
    variables = {**os.environ, "DOES": does, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, check=False, cwd=folder, env=variables, capture_output=True, text=True, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TESTED)
    return tmp_path


def test_a_test_that_failed_may_not_be_skipped_when_repeated(folder: Path) -> None:
    assert run(folder, "fails").returncode == 1
    repeated = run(folder, "skips", "--last-failed")
    assert repeated.returncode == 1
    assert "failed before, and was skipped when repeated: Skipped: nothing to see" in repeated.stdout
    assert run(folder, "passes", "--last-failed").returncode == 0


def test_other_tests_may_be_skipped(folder: Path) -> None:
    assert run(folder, "skips").returncode == 0
    assert run(folder, "skips", "--last-failed").returncode == 0


def test_without_a_cache_tests_run_as_before(folder: Path) -> None:
    assert run(folder, "skips", "-p", "no:cacheprovider").returncode == 0
    failed = run(folder, "fails", "-p", "no:cacheprovider")
    assert failed.returncode == 1 and "INTERNALERROR" not in failed.stdout + failed.stderr
