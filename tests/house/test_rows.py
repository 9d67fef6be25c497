"""Each row of the scenarios that is promised of a real cluster has a test there, which carries the row's id."""

import os
import re
from pathlib import Path

import pytest

from tests.scenarios.rows import TABLE

ROOT = Path(__file__).resolve().parents[2]
ROWS = (
    *("S0.1", "S0.2"),
    *("S1.1", "S1.2", "S1.3", "S1.8"),
    *("S2.1", "S2.2", "S2.3", "S2.4", "S2.5", "S2.6", "S2.8", "S2.10"),
    *("S3.1", "S3.2", "S3.3", "S3.4", "S3.5", "S3.6"),
    *("S4.1", "S4.2", "S4.4", "S4.5", "S4.6"),
)


LAB, CLUSTER = ROOT / "tests" / "scenarios", ROOT / "tests" / "cluster"


def taken_by(runner: Path) -> set[str]:
    """The names of the tests that a runner has of its own, takes by name or takes from the table."""
    text = "\n".join(path.read_text() for path in runner.rglob("test_*.py"))
    own = re.findall(r"^(?:def )?(test_\w+)(?:\(| =)", text, re.MULTILINE)
    by_name = re.findall(r"(?<=\.)test_s\d_\w+", text)
    whole = re.findall(r'update\(TABLE\["([^"]+)"\]\.tests', text)
    whole += re.findall(r'^ROWS = TABLE\["([^"]+)"\]$(?:\n(?!ROWS).*)*?\nglobals\(\)\.update\(ROWS', text, re.MULTILINE)
    return {*own, *by_name, *(name for key in whole for name in TABLE[key].tests)}


def test_every_row_has_a_test_on_a_real_cluster() -> None:
    found = {row for name in taken_by(CLUSTER) for row in re.findall(r"(?<=_)s\d_\d+(?=_)", name)}
    assert [row for row in ROWS if row.lower().replace(".", "_") not in found] == []


@pytest.mark.parametrize("runner", [LAB, CLUSTER], ids=["lab", "cluster"])
def test_a_runner_takes_all_tests_of_the_table(runner: Path) -> None:
    assert {name for rows in TABLE.values() for name in rows.tests} - taken_by(runner) == set()


def test_the_rows_are_those_that_are_marked() -> None:
    path = Path(os.environ.get("LAMINA_SEEDS", ROOT.parent / "shared" / "seeds")).parent / "scenarios.md"
    if not path.exists():
        pytest.skip(f"the list of scenarios is not at {path}")
    assert re.findall(r"^\| (S\d\.\d+) R \|", path.read_text(), re.MULTILINE) == [*ROWS]
