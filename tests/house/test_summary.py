"""What was skipped is counted by reason, with as many lines as there are reasons, and slow files are named."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests.summary import seconds_by_file

ROOT = Path(__file__).resolve().parents[2]
TESTED = """
import pytest

from tests.summary import seconds_by_file

@pytest.mark.parametrize("each", range(3))
def test_needs_root(each):
    pytest.skip("needs root")

@pytest.mark.skip(reason="needs a card\\nand its driver")
def test_needs_a_card():
    pass

@pytest.mark.skip
def test_says_nothing():
    pass

def test_passes():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["in one process", "side by side"])
def test_reasons_are_counted(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(TESTED)
    plugins = ["-p", "tests.summary", "-p", "no:cacheprovider", "--rootdir=.", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *workers],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    *_, heading, first, second, third, last = filter(None, done.stdout.splitlines())
    assert "5 skipped, by reason" in heading
    assert [first, second, third] == ["    3  needs root", "    1  needs a card", "    1  unconditional skip"]
    assert "1 passed, 5 skipped" in last


def test_a_run_without_skips_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_passes(): pass")
    command = [sys.executable, "-m", "pytest", "-p", "tests.summary", "--rootdir=.", "-c", os.devnull]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, check=True, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert "by reason" not in done.stdout


def test_the_seconds_of_a_file_are_those_of_all_phases_of_its_tests() -> None:
    def report(test: str, when: Literal["setup", "call", "teardown"], seconds: float) -> pytest.TestReport:
        return pytest.TestReport(test, ("", 0, ""), {}, "passed", None, when, duration=seconds)

    reports = [report("a.py::x", "setup", 1), report("a.py::x[1]", "call", 2), report("b.py::T::y", "teardown", 5)]
    assert seconds_by_file([*reports, "no report of a test"]).most_common() == [("b.py", 5), ("a.py", 3)]
