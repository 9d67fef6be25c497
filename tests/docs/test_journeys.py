"""The pictures of docs/concepts/journeys.md show the files that run, and its text names files that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.journeys import MAIN_FILES, PICTURES, PRODUCT, follow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/concepts/journeys.md"
MAX_FILES = 75
"""Files of admission, controller, agent and enforcement that one pod passes. A change that adds one says why."""


def test_the_pictures_are_those_of_the_code(tmp_path: Path) -> None:
    """In a process of its own, because what other tests called may be cached."""
    subprocess.run([sys.executable, "-m", "tests.docs.journeys", tmp_path], cwd=ROOT, check=True)
    for made in tmp_path.iterdir():
        written = (PICTURES / made.name).read_text()
        assert made.read_text() == written, "run `python -m tests.docs.journeys` and `python -m docs.generate.diagrams`"
    pod = (PICTURES / "journey-pod.dot").read_text()
    assert pod.count(".py") <= MAX_FILES


@pytest.mark.parametrize("name", MAIN_FILES)
async def test_the_files_of_a_journey_run_in_this_order(name: str, tmp_path: Path) -> None:
    for files, found in zip(MAIN_FILES[name].values(), await follow(name, tmp_path), strict=True):
        assert [file for file in found if file in files] == files


def test_the_page_names_files_that_exist() -> None:
    names = re.findall(r"`(\w+(?:/\w+)+\.py)`", PAGE.read_text())
    assert len(names) > 20
    assert [name for name in names if not Path(PRODUCT, name).exists() and not name.startswith("tests/")] == []
