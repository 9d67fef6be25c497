"""The site builds without warnings and without network, and its pages stay short, wrapped and in plain words."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import diagrams
from tests.words import AVOIDED

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# They have the words of the code, which tests of their own look at, and grow with each key of the configuration.
GENERATED = frozenset(page for page in PAGES if "`python -m docs.generate`. Do not edit." in page.read_text())
WRITTEN = [page for page in PAGES if page not in GENERATED]


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    """Every link and anchor leads somewhere, and every page is in the navigation."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "site/index.html").exists()


def test_the_site_loads_nothing_from_the_network(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    loaded = re.compile(r"""<(?:script|img|iframe)[^>]+src="https?://|<link[^>]+rel="stylesheet"[^>]+href="https?://""")
    assert [str(page) for page in (tmp_path / "site").rglob("*.html") if loaded.search(page.read_text())] == []


@pytest.mark.parametrize("page", [page for page in WRITTEN if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_a_page_has_at_most_200_lines(page: Path) -> None:
    """Each release adds to the changelog, so it grows."""
    assert len(page.read_text().splitlines()) <= 200


def test_the_readme_has_at_most_120_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_lines_are_wrapped(page: Path) -> None:
    """Rows of tables and code that cannot be wrapped may be longer."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "[", "<"))] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_that_we_avoid(page: Path) -> None:
    assert AVOIDED.findall(page.read_text()) == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if DOCS not in page.parents], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_of_the_pages_outside_the_site(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_links_to_examples_work_in_the_repository_too() -> None:
    broken = [
        (str(page.relative_to(ROOT)), target)
        for page in DOCS.rglob("*.md")
        for target in re.findall(r"\]\(([^)#]*examples/[^)#]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_picture_is_made_from_its_source() -> None:
    assert list(diagrams.out_of_date()) == []
