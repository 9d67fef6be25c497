"""Atomics in C have one form, <stdatomic.h>, and each order weaker than sequential consistency has its reason."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for tree in ("native", "lab/native") for path in (ROOT / tree).rglob("*.[ch]"))
WEAK = re.compile(r"\bmemory_order_(?:relaxed|consume|acquire|release|acq_rel)\b")
BUILTIN = re.compile(r"\b__(?:atomic|sync)_\w+|\b__ATOMIC_\w+")
# 128-bit words, parts of which are also read alone. Standard atomics know no access of mixed size.
WITH_BUILTINS = {"lab/native/simgpu/core/pair.h", "lab/native/include/simgpu_layout.h"}


def unexplained(text: str) -> list[int]:
    """Numbers of the lines with a weak order without a comment in the statement or directly above it.

    A comment also covers the macros that follow it without a blank line in between.
    """
    lines = text.splitlines()
    found = []
    for index, line in enumerate(lines):
        if not WEAK.search(line):
            continue
        first = index
        while first > 0 and not is_boundary(lines[first - 1]) and not lines[first].startswith("#define"):
            first -= 1
        while lines[first].startswith("#define") and lines[first - 1].endswith(("\\", ")")):
            first -= 1
        above = lines[first - 1] if first > 0 else ""
        if not above.rstrip().endswith("*/") and not any("/*" in part for part in lines[first : index + 1]):
            found.append(index + 1)
    return found


def is_boundary(line: str) -> bool:
    """Whether a line ends a statement, a block or a comment, so that the next line begins a statement."""
    stripped = line.strip()
    return stripped == "" or stripped.endswith((";", "{", "}", "*/"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_weak_orders_have_a_reason(path: Path) -> None:
    assert unexplained(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_standard_atomics_are_used(path: Path) -> None:
    if str(path.relative_to(ROOT)) not in WITH_BUILTINS:
        assert BUILTIN.findall(path.read_text()) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("    a = 1;\n    atomic_load_explicit(&x, memory_order_relaxed);\n", [2]),
        ("    a = 1;\n    /* why */\n    atomic_load_explicit(&x, memory_order_relaxed);\n", []),
        ("    /* why */\n    if (a ||\n        atomic_load_explicit(&x, memory_order_acquire))\n", []),
        ("    /* why */\n    a = 1;\n    if (a ||\n        atomic_load_explicit(&x, memory_order_acquire))\n", [4]),
        ("    atomic_load_explicit(&x, memory_order_release); /* why */\n", []),
        ("/* why */\n#define A(x) f(x, memory_order_relaxed)\n#define B(x) g(x, memory_order_relaxed)\n", []),
        ("int y;\n#define B(x) g(x, memory_order_relaxed)\n", [2]),
        ("    atomic_load_explicit(&x, memory_order_seq_cst);\n", []),
    ],
)
def test_a_missing_reason_is_found(text: str, lines: list[int]) -> None:
    assert unexplained(text) == lines
