"""The house stays one that a person can read: sizes of files and functions, and the file names it allows."""

import ast
import re
import statistics
from pathlib import Path

import pytest

from tests.house.budgets import GENERATED, PYTHON, ROOT, lines_of

C = sorted(
    p
    for pattern in ("*.c", "*.h")
    for p in (ROOT / "native").rglob(pattern)
    if not GENERATED.search(str(p)) and "tests" not in p.parts
)


@pytest.mark.parametrize("path", PYTHON + C, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_passes_500_lines(path: Path) -> None:
    assert lines_of(path) <= 500


def test_half_of_the_files_stay_under_150_lines() -> None:
    assert statistics.median(lines_of(path) for path in PYTHON) < 150


def functions(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(f"{path.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1) for node in found]


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_function_passes_70_lines(path: Path) -> None:
    assert [name for name, length in functions(path) if length > 70] == []


@pytest.mark.parametrize("path", C, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_c_function_passes_70_lines(path: Path) -> None:
    too_long = []
    start = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("{") or re.match(r"^[A-Za-z_].*\)\s*\{\s*$", line):
            start = number
        elif line.startswith("}") and start is not None:
            if number - start > 70:
                too_long.append(f"{path.name}:{start}")
            start = None
    assert too_long == []


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_has_a_docstring(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{path.relative_to(ROOT)} has no module docstring"


def test_no_module_is_for_odds_and_ends() -> None:
    names = {path.stem for path in PYTHON} | {path.parent.name for path in PYTHON}
    assert not names & {"utils", "util", "helpers", "misc", "common", "manager"}
