"""One HTML file with charts, facts and tables. It has no script and loads nothing, so it can be sent as it is."""

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from msgspec import Struct

from lamina.operations.charts.shapes import Chart
from lamina.operations.charts.svg import printable, svg_element

_STYLE = """
body { font: 15px/1.5 sans-serif; color: #222; background: #fff; max-width: 70em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 } svg { max-width: 100%; height: auto }
th, td { text-align: left; padding: .2em .8em .2em 0; border-bottom: 1px solid #ddd; vertical-align: top }
tr.wrong td { background: #fbe3e6 }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class HtmlTable(Struct, frozen=True, kw_only=True):
    """A table of texts. `wrong` are the rows that are shown as failures, by their place."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wrong: frozenset[int] = frozenset()


def html_page(title: str, facts: Mapping[str, str], charts: Sequence[Chart], tables: Iterable[HtmlTable] = ()) -> bytes:
    """The page. Texts are shown as they are, whatever they contain."""
    root = ElementTree.Element("html", lang="en")
    head, body = ElementTree.SubElement(root, "head"), ElementTree.SubElement(root, "body")
    ElementTree.SubElement(head, "meta", charset="utf-8")
    ElementTree.SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY})
    _add(head, "title", title)
    _add(head, "style", _STYLE)
    _add(body, "h1", title)
    if facts:
        _add_table(body, HtmlTable(title="", head=(), rows=tuple(facts.items())))
    for chart in charts:
        body.append(svg_element([chart]))
    for table in tables:
        _add(body, "h2", table.title)
        _add_table(body, table)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", method="html")
    return b"<!doctype html>\n" + written + b"\n"


def _add_table(parent: ElementTree.Element, table: HtmlTable) -> None:
    made = ElementTree.SubElement(parent, "table")
    if table.head:
        row = ElementTree.SubElement(made, "tr")
        for cell in table.head:
            _add(row, "th", cell)
    for place, cells in enumerate(table.rows):
        row = ElementTree.SubElement(made, "tr", {"class": "wrong"} if place in table.wrong else {})
        for cell in cells:
            _add(row, "td", cell)


def _add(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = printable(text)
