"""What the program says of its documentation leads to pages and headings that exist."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from lamina.core.component_names import SITE, documentation
from lamina.install.telemetry.rules import rules

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab/src").rglob("*.py")]


def anchors(page: str) -> set[str]:
    lines = (DOCS / page).read_text().splitlines()
    return {slugify(line.lstrip("# ").replace("`", ""), "-") for line in lines if line.startswith("#")}


def problem(page: str) -> str | None:
    """What is wrong with a page such as how-to/alerts.md#laminanoleader."""
    path, _, anchor = page.partition("#")
    if not path.endswith(".md") or not (DOCS / path).is_file():
        return f"docs has no page {path}"
    return f"{path} has no heading {anchor}" if anchor and anchor not in anchors(path) else None


def named() -> Iterator[str]:
    """The pages whose addresses the program asks for by name."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "documentation":
                yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def test_each_page_that_the_program_names_exists() -> None:
    pages = list(named())
    assert pages
    assert [found for page in pages if (found := problem(page))] == []


@pytest.mark.parametrize("page", ["how-to/alert.md", "how-to/alerts", "how-to/alerts.md#laminanolead"])
def test_a_page_that_is_missing_is_found(page: str) -> None:
    assert problem(page)


def test_addresses_are_those_of_the_built_site() -> None:
    assert documentation("how-to/alerts.md") == f"{SITE}/how-to/alerts/"
    assert documentation("contributing/index.md#tests") == f"{SITE}/contributing/#tests"


def test_each_alert_leads_to_its_section() -> None:
    alerts = [rule for group in rules()["groups"] for rule in group["rules"] if "alert" in rule]
    assert alerts and all(
        rule["annotations"]["runbook_url"] == f"{SITE}/how-to/alerts/#{rule['alert'].lower()}" for rule in alerts
    )
    assert {rule["alert"].lower() for rule in alerts} <= anchors("how-to/alerts.md")


def test_the_address_is_written_in_one_place() -> None:
    assert [path.name for path in SOURCES if SITE in path.read_text()] == ["component_names.py"]
