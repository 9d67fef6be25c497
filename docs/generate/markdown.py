"""Small pieces of Markdown: tables, wrapped paragraphs, and the head of a generated page."""

import re
import textwrap
from collections.abc import Iterable, Sequence


def page(title: str, source: str, *parts: str) -> str:
    """A whole page. `source` names what it is made from, for readers who want to change it."""
    head = f"# {title}\n\n<!-- Generated from {source} by `python -m docs.generate`. Do not edit. -->"
    return "\n\n".join([head, *(part.strip("\n") for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def code(value: str) -> str:
    return f"`{value}`" if value else ""


def sentence(text: str) -> str:
    """The text with a capital at its beginning and without a full stop, as cells of tables have it."""
    text = " ".join(text.split()).removesuffix(".")
    return text if re.match(r"[`A-Z0-9]|\w+[A-Z]", text) else text[:1].upper() + text[1:]
