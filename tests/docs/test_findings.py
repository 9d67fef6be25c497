"""Every test that a table of findings, or of statements of the guides, names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECURITY, USERS, FAULTS = "security-findings.md", "user-findings.md", "fault-findings.md"
DOCUMENTS = "documents.md"
STATEMENTS = (26, 29, 42, 24, 22)
"""Of Huawei CCE's guide, Volcano's, "Sharing your GPU in the cloud", NVIDIA's and 4paradigm's."""


def rows(page: str) -> list[str]:
    """The rows of the page's tables that have a number."""
    text = (ROOT / "docs/contributing" / page).read_text()
    return [line for line in text.splitlines() if re.match(r"\| B?\d+ \|", line)]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def number(row: str) -> str:
    return cells(row)[0]


@pytest.mark.parametrize(
    "row",
    rows(SECURITY) + rows(USERS) + rows(FAULTS) + [row for row in rows(DOCUMENTS) if cells(row)[-1] != "no test"],
    ids=lambda row: f"finding {number(row)}: {cells(row)[1][:30]}",
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


def test_every_statement_of_the_guides_is_there() -> None:
    assert [number(row) for row in rows(DOCUMENTS)] == [str(n + 1) for most in STATEMENTS for n in range(most)]


@pytest.mark.parametrize("row", rows(DOCUMENTS), ids=lambda row: cells(row)[1][:30])
def test_a_statement_holds_or_the_row_says_why_not(row: str) -> None:
    _, statement, now, tests = cells(row)
    assert statement and tests
    assert re.match(r"yes\b|(differs|not applicable|missing): \S", now)
