"""How large the house is, and how large it may be.

`budgets.txt` has one line per number: the bound, what it bounds, and after a `#` why it may be what it is. After a
change that makes the tree smaller, `python -m tests.house.budgets` tightens every bound that the tree does not reach.
To raise one, write the number by hand, with the reason on its line.
"""

import ast
import re
import statistics
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ROOT / "src" / "lamina"
BOUNDS = Path(__file__).with_name("budgets.txt")
GENERATED = re.compile(r"_pb2(_grpc)?\.py$|generated|/_native/")
PYTHON = sorted(path for path in PRODUCT.rglob("*.py") if not GENERATED.search(str(path)))
MIN_LINES = 40
"""A module below this is more often a part of another one than an idea of its own."""


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def import_lines(path: Path) -> int:
    """The lines that import statements take, wherever they stand."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


@cache
def measured() -> dict[str, int]:
    """Each number, by the words that `budgets.txt` has for it."""
    modules = [lines_of(path) for path in PYTHON if path.name != "__init__.py"]
    numbers = {
        "files": len(PYTHON),
        "lines of imports": sum(import_lines(path) for path in PYTHON),
        f"modules under {MIN_LINES} lines": sum(lines < MIN_LINES for lines in modules),
        "lines of the median module at least": int(statistics.median(modules)),
        "lines": sum(map(lines_of, PYTHON)),
    }
    for package in ("agent", "controller"):
        numbers[f"files of {package}"] = sum(path.is_relative_to(PRODUCT / package) for path in PYTHON)
    return numbers


def bounds() -> dict[str, int]:
    """The bounds of `budgets.txt`."""
    rows = [line.partition("#")[0].split(maxsplit=1) for line in BOUNDS.read_text().splitlines()]
    return {row[1].strip(): int(row[0]) for row in rows if row}


def tightest(what: str, bound: int, number: int) -> int:
    """The bound for this number that allows no less and no more than it has to."""
    return max(bound, number) if what.endswith(" at least") else min(bound, number)


def tighten() -> None:
    """Write the bounds that the tree keeps today."""
    text = BOUNDS.read_text()
    numbers = measured()
    for what, bound in bounds().items():
        text = re.sub(
            rf"^{bound}(?= +{re.escape(what)}(?: *#|$))",
            str(tightest(what, bound, numbers[what])),
            text,
            flags=re.MULTILINE,
        )
    BOUNDS.write_text(text)


if __name__ == "__main__":
    tighten()
