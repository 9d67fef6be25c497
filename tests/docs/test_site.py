"""The site builds without warnings and without network, and its pages stay short, wrapped and in plain words."""

import re
from pathlib import Path

import pytest

from docs.generate import diagrams
from docs.screenshots import contact_sheet
from lamina import __version__
from tests.browser import browser, missing_browser
from tests.words import AVOIDED

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# They have the words of the code, which tests of their own look at, and grow with each key of the configuration.
GENERATED = frozenset(page for page in PAGES if "`python -m docs.generate`. Do not edit." in page.read_text())
WRITTEN = [page for page in PAGES if page not in GENERATED]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: every link and anchor leads somewhere, and every page is in the navigation."""
    folder = tmp_path_factory.mktemp("site")
    contact_sheet.build(folder)
    return folder


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|img|iframe)[^>]+src="https?://|<link[^>]+rel="stylesheet"[^>]+href="https?://""")
    assert [str(page) for page in site.rglob("*.html") if loaded.search(page.read_text())] == []


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
def test_every_page_fits_a_desktop_and_a_phone(site: Path) -> None:
    """The document is no wider than the window, and what is wider than the text can be scrolled to."""
    names = contact_sheet.pages(site)
    assert len(names) > 100 and "" in names
    with contact_sheet.served(site) as address, browser() as driver:
        contact_sheet.without_search(driver)
        found = {name: contact_sheet.misfits(driver, address + name) for name in names}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("<p>short</p>", False),
        ("<table><td style='min-width: 2000px'>wide</td></table>", True),
        ("<div style='overflow-x: auto'><p style='width: 2000px'>wide</p></div>", False),
        ("<div style='overflow-x: hidden'><p style='width: 2000px'>wide</p></div>", True),
    ],
)
def test_what_does_not_fit_is_found(tmp_path: Path, body: str, wrong: bool) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<article>{body}</article>")
    with browser() as driver:
        found = contact_sheet.misfits(driver, f"file://{page}")
    assert found.keys() == (contact_sheet.WIDTHS.keys() if wrong else set())


@pytest.mark.parametrize(("page", "rest"), [("docs/index.md", "## Where to go"), ("README.md", "## What you see")])
def test_the_first_page_leads_to_three_ways_to_begin(page: str, rest: str) -> None:
    """They and a picture of the product come before everything else."""
    first = (ROOT / page).read_text().partition(rest)[0]
    assert "images/dashboard-overview-1280-light.png" in first and "images/dashboard-overview-1280-dark.png" in first
    for way in ("tutorials/lab.md", "tutorials/first-share.md", "how-to/run-without-kubernetes.md"):
        assert way in first
    assert "make test" not in first


def test_every_page_shows_the_version(site: Path) -> None:
    names = contact_sheet.pages(site)
    assert [name for name in names if __version__ not in (site / name / "index.html").read_text()] == []


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
