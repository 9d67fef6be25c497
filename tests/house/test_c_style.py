"""C of the facade and of the simulator reads the same: structs keep their tag, and one condition decides at a time."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for tree in ("native", "lab/native")
    for path in (ROOT / tree).rglob("*.[ch]")
    if not path.name.endswith(("_prototypes.h", "_min.h"))  # NVIDIA's declarations
)
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
HIDDEN = re.compile(r"^typedef (?:struct|enum|union)\b.*", re.MULTILINE)


def code(text: str) -> str:
    """The text without comments and literals, with the same lines."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def chains(text: str) -> Iterator[int]:
    """Numbers of the lines with a conditional operator inside the branches of another one.

    Each opened parenthesis or brace, and each comma or semicolon, begins an expression of its own; `?` counts as long
    as its expression goes on, also below it.
    """
    depths: list[int] = []
    depth, line = 0, 1
    for letter in code(text):
        if letter == "\n":
            line += 1
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            depths = [each for each in depths if each <= depth]
        elif letter in ",;":
            depths = [each for each in depths if each < depth]
        elif letter == "?":
            if depths:
                yield line
            depths.append(depth)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_typedef_hides_a_struct(path: Path) -> None:
    assert HIDDEN.findall(code(path.read_text())) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_conditional_operators_are_not_chained(path: Path) -> None:
    assert list(chains(path.read_text())) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = a ? b : c;\ny = d ? e : f;", []),
        ("x = a ? b : c ? d : e;", [1]),
        ("x = a\n  ? (b ? c : d)\n : e;", [2]),
        ("f(a ? b : c, d ? e : f);", []),
        ("f(a ? g(b ? c : d) : e);", [1]),
        ("x = a ? b : c, y = d ? e : f;", []),
        ("x = (a ? b : c) + (d ? e : f);", []),
        ('/* ? : ? */ x = a ? "?" : b;', []),
    ],
)
def test_a_chain_is_found(text: str, lines: list[int]) -> None:
    assert list(chains(text)) == lines
