"""Every test that a table of findings names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECURITY, USERS, FAULTS = "security-findings.md", "user-findings.md", "fault-findings.md"


def rows(page: str) -> list[str]:
    """The rows of the page's first table."""
    text = (ROOT / "docs/contributing" / page).read_text()
    return [line for line in text.splitlines() if re.match(r"\| B?\d+ \|", line)]


def number(row: str) -> str:
    return row.split("|")[1].strip()


@pytest.mark.parametrize(
    "row",
    rows(SECURITY) + rows(USERS) + rows(FAULTS),
    ids=lambda row: f"finding {number(row)}: {row.split('|')[2].strip()[:30]}",
)
def test_the_tests_of_a_finding_exist(row: str) -> None:
    named = re.findall(r"`(tests/[^`]+)`", row)
    assert named
    for path, _, function in (name.partition("::") for name in named):
        assert (ROOT / path).exists(), path
        assert not function or f"def {function}(" in (ROOT / path).read_text(), f"{path} has no {function}"


def test_security_findings_are_in_order() -> None:
    numbers = [int(number(row)) for row in rows(SECURITY)]
    assert numbers == sorted(set(numbers)) and set(numbers) <= set(range(1, 26))


def test_user_findings_are_in_order() -> None:
    """Frictions 1 to 20, then bugs B1 to B13."""
    known = [*(str(each) for each in range(1, 21)), *(f"B{each}" for each in range(1, 14))]
    found = [number(row) for row in rows(USERS)]
    assert found == [each for each in known if each in found] and len(found) == len(set(found))


def test_fault_findings_are_in_order() -> None:
    """A finding may have several rows."""
    numbers = [int(number(row)) for row in rows(FAULTS)]
    assert numbers == sorted(numbers) and set(numbers) <= set(range(1, 18))
