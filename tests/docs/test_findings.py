"""Every test that a table of findings, or of statements of the guides, names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THREATS = "docs/concepts/threat-model.md"
NO_TEST = "**No test**"
SECURITY, USERS, FAULTS = "security-findings.md", "user-findings.md", "fault-findings.md"
DOCUMENTS = "documents.md"
STATEMENTS = (26, 29, 42, 24, 22)
"""Of Huawei CCE's guide, Volcano's, "Sharing your GPU in the cloud", NVIDIA's and 4paradigm's."""


def rows(page: str) -> list[str]:
    """The rows of the page's tables that have a number."""
    text = (ROOT / "docs/contributing" / page).read_text()
    return [line for line in text.splitlines() if re.match(r"\| [BS]?\d+ \|", line)]


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
    for name in named:
        assert missing(name) == ""


def missing(name: str) -> str:
    """What does not exist of a test that is named by its path and perhaps its function."""
    path, _, function = name.partition("::")
    if not (ROOT / path).exists():
        return path
    return "" if not function or f"def {function}(" in (ROOT / path).read_text() else f"{path} has no {function}"


def promises() -> list[str]:
    """The rows of the model of the attackers that promise something."""
    text = (ROOT / THREATS).read_text()
    tables = text.split("| promise | needs | test |\n|---|---|---|\n")[1:]
    return [row for table in tables for row in table.split("\n\n")[0].splitlines()]


@pytest.mark.parametrize("row", promises(), ids=lambda row: cells(row)[0][:40])
def test_a_promise_of_the_threat_model_has_a_test_or_says_that_it_has_none(row: str) -> None:
    promise, needs, tests = cells(row)
    named = re.findall(r"`([a-z_/]+\.py[^`]*)`", tests)
    assert promise and needs and (named or tests.startswith(NO_TEST))
    assert [found for name in named if (found := missing(f"tests/{name}"))] == []


def test_each_attacker_of_the_threat_model_has_promises() -> None:
    assert len(promises()) > 30
    text = (ROOT / THREATS).read_text().partition("## What holds")[2]
    for attacker in ("a tenant", "root in a container", "viewers and the network", "agents and root on a node"):
        assert f"### Against {attacker}\n\n| promise |" in text


def test_security_findings_are_in_order() -> None:
    """The 25 of the first review, then those of the second one, which begin with S."""
    known = [*(str(each) for each in range(1, 26)), *(f"S{each}" for each in range(10, 21))]
    found = [number(row) for row in rows(SECURITY)]
    assert found == [each for each in known if each in found] and len(found) == len(set(found))


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
