"""Every test that the table of security findings names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/contributing/security-findings.md").read_text()
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"finding {row.split('|')[1].strip()}")
def test_the_tests_of_a_finding_exist(row: str) -> None:
    named = re.findall(r"`(tests/[^`]+)`", row)
    assert named
    for path, _, function in (name.partition("::") for name in named):
        assert (ROOT / path).exists(), path
        assert not function or f"def {function}(" in (ROOT / path).read_text(), f"{path} has no {function}"


def test_findings_are_in_order() -> None:
    numbers = [int(row.split("|")[1]) for row in ROWS]
    assert numbers == sorted(set(numbers)) and set(numbers) <= set(range(1, 26))
