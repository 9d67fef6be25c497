"""Rules for the tests themselves."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def imported_names(path: Path) -> set[str]:
    """The full dotted names that a module imports: modules, and what it takes from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join((*folder, *filter(None, [node.module])))
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def enclosing_test_module(name: str) -> Path | None:
    """The test module that a dotted name names, or names a part of."""
    path = ROOT
    for part in name.split("."):
        path /= part
        module = path.with_suffix(".py")
        if part.startswith("test_") and module.is_file():
            return module
    return None


def test_no_module_imports_from_a_test_module() -> None:
    """What tests share is in modules of its own, named for what they hold."""
    imports = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in sorted(imported_names(path))
        if enclosing_test_module(name) is not None
    ]
    assert imports == []


def test_what_needs_root_says_so_by_its_mark() -> None:
    """`make root-test` finds them by it."""
    modules = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "cluster" not in path.parts]
    assert [str(path) for path in modules if re.search(r"gete?uid\(\) != 0", path.read_text())] == []


SLEEPS = {
    "tests/waiting.py": "the only loops that ask again: for processes, threads and sockets",
    "tests/enforcement/test_run.py": "a signal at each moment of a start",
    "tests/facade/arbitrated.py": "parts of a GPU's time, over a window of real time",
    "tests/scenarios/gpu_time.py": "parts of a GPU's time, over a window of real time",
    "tests/simgpu/test_mps.py": "the utilization of the last second",
    "tests/simgpu/test_timeline.py": "parts of a GPU's time, over a window of real time",
}
"""The test files that sleep, and what for. tests/cluster runs real components in real time and is not looked at."""


def sleeps(source: str) -> int:
    """How many calls of `time.sleep` and `asyncio.sleep` pass real time; `sleep(0)` only lets other tasks run."""
    tree = ast.parse(source)
    names = {"time.sleep", "asyncio.sleep"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "asyncio"):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "sleep"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) in names]
    return sum(not (call.args and ast.unparse(call.args[0]) == "0") for call in calls)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("time.sleep(0.1); await_ = asyncio.sleep(pause_s)", 2),
        ("from asyncio import sleep as nap\nnap(1)", 1),
        ("asyncio.sleep(0); clock.sleep(5); sleep(5)", 0),
    ],
)
def test_sleeps_are_found(source: str, count: int) -> None:
    assert sleeps(source) == count


def test_tests_pass_a_clock_or_wait_for_a_condition_instead_of_sleeping() -> None:
    """`FakeClock` is for code that takes a clock, `tests.waiting` for what happens outside the test."""
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))}
    sleeping = {name for name, text in texts.items() if "sleep" in text and sleeps(text)}
    assert {name for name in sleeping if not name.startswith("tests/cluster/")} == set(SLEEPS)
