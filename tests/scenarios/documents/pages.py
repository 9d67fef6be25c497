"""The pages for those who followed a document: what differs here, and why."""

import re
from pathlib import Path

PAGES = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "documents"


def listed(page: str) -> set[str]:
    """The first column of a page's table of differences."""
    table = (PAGES / page).read_text().partition("## What differs\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)) - {"in the document", "in the post"}
