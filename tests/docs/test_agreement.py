"""Pages agree with each other and with the program where both say the same thing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.configuration import DEFAULT
from lamina.dialects.registry import name_index

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/lamina"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "deploy").glob("*.md")])
PAGES.remove(ROOT / "CHANGELOG.md")  # it says what was
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text()
    return re.split(r"^#{2,3} ", text.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def figures(page: str, heading: str) -> Iterator[tuple[str, str]]:
    """Each row of a table of measurements, and each number of its second and later cells."""
    rows = [line.strip("|").split("|") for line in section(page, heading).splitlines() if line.startswith("| ")]
    for measure, *cells in rows[1:]:
        yield from ((measure.strip(), number) for number in re.findall(r"\d[\d.,]*\d|\d", " ".join(cells)))


def test_a_figure_of_the_readme_is_the_one_of_the_comparison() -> None:
    known = set(re.findall(r"\d[\d.,]*\d|\d", (ROOT / "docs/comparison.md").read_text()))
    shown = [(measure, number) for measure, number in figures("README.md", "How it compares") if "2026" not in number]
    assert len(shown) > 10
    assert [f"{measure}: {number}" for measure, number in shown if number not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_page_denies_the_measurements_on_cards(page: Path) -> None:
    text = " ".join(page.read_text().split())
    assert not re.search(r"(only|nothing but) (measured |run it )?on (\*\*)?simulated GPUs|we have none yet", text)


def test_a_choice_of_modes_names_all_values() -> None:
    """The row of an annotation lists every value that admission accepts."""
    choices = name_index(DEFAULT).choice_annotations
    page = (ROOT / "docs/reference/requests.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| `nvidia.com/vgpu-mode`")]
    assert set(re.findall(r"`([\w-]+)`", row.split("|")[2])) == set(choices.mode_values)


def test_the_table_of_packages_is_what_there_is() -> None:
    listed = re.findall(r"^\| (`[^|]+`) \|", section("docs/concepts/architecture.md", "Packages"), re.MULTILINE)
    named = {name for cell in listed for name in re.findall(r"`([^`]+)`", cell)}
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert named == packages | {"native/facade"}


def test_a_lease_has_the_name_that_the_code_gives_it() -> None:
    text = " ".join(" ".join(page.read_text().split()) for page in PAGES)
    named = {name.rpartition("/")[2] for name in re.findall(r"Lease `([\w/.-]+)`", text)}
    code = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert named and [name for name in named if f'"{name}"' not in code] == []
    assert not re.search(r"node's Lease", text), "there is one for all placements"


def sentences() -> Iterator[tuple[Path, str]]:
    """Texts of the program that tell a person to change the configuration."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "in the configuration" in node.value:
                yield path, node.value


def test_keys_that_messages_name_are_keys_of_the_configuration() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text()
    keys = {re.sub(r"\[\]", "", key) for key in re.findall(r"^\| `([\w.\[\]]+)`", page, re.MULTILINE)}
    word = re.compile(r"\b[a-z]+[.][\w.]*\w|\b[a-z]+[A-Z]\w+")
    said = {(path, key) for path, text in sentences() for key in word.findall(text)}
    assert any(key == "mig.strategy" for _, key in said)
    assert [f"{path.name}: {key}" for path, key in sorted(said) if key not in keys] == []
