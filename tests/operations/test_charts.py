"""Charts are drawn from any numbers and names, and pages load nothing."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.operations.charts import Bar, BarChart, Chart, HtmlTable, Line, LineChart, html_page, svg_file, text_chart
from lamina.operations.charts.svg import printable

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = st.floats()
NAMES = st.text(max_size=20)
BARS = st.builds(Bar, name=NAMES, value=st.none() | FIGURES, limit=st.none() | FIGURES, wrong=st.booleans())
LINES = st.builds(Line, name=NAMES, points=st.lists(st.tuples(FIGURES, FIGURES), max_size=9).map(tuple))
CHARTS: st.SearchStrategy[Chart] = st.builds(
    BarChart, title=NAMES, unit=NAMES, bars=st.lists(BARS, max_size=5).map(tuple)
) | st.builds(
    LineChart, title=NAMES, axis=NAMES, unit=NAMES, top=st.floats(1, 1000), lines=st.lists(LINES, max_size=4).map(tuple)
)


def numbers(svg: bytes) -> list[float]:
    """Every coordinate and size of the file."""
    root = ElementTree.fromstring(svg)
    texts = [root.get("viewBox") or ""]
    for element in root.iter():
        texts += [element.get(name) or "" for name in ("points", "x", "y", "width", "height")]
    return [float(word) for text in texts for word in re.split("[ ,]", text) if word]


@given(st.lists(CHARTS, max_size=3))
def test_any_numbers_and_names_are_drawn_within_the_picture(charts: list[Chart]) -> None:
    svg = svg_file(charts)
    _, _, width, height = map(float, (ElementTree.fromstring(svg).get("viewBox") or "").split())
    assert all(0 <= number <= max(width, height) for number in numbers(svg))


@given(CHARTS, st.integers(20, 200))
def test_a_text_chart_has_a_row_for_each_bar_and_curve(chart: Chart, width: int) -> None:
    title, *rows = text_chart(chart, width, ascii_only=True)
    assert title == chart.title
    assert len(rows) == len(chart.lines if isinstance(chart, LineChart) else chart.bars)


@given(NAMES, st.lists(CHARTS, max_size=2))
def test_texts_on_a_page_are_texts(name: str, charts: list[Chart]) -> None:
    parser = Reader()
    parser.feed(html_page(name, {name: name}, charts, [HtmlTable(title=name, head=(name,), rows=((name,),))]).decode())
    parser.close()
    assert parser.tags <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "table", "tr", "th", "td"),
        *("svg", "rect", "text", "polyline"),
    }
    assert not parser.loading


class Reader(HTMLParser):
    """Collects tags, and attributes that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loading: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loading += [name for name, _ in attrs if name in ("src", "href", "onload") or name.startswith("on")]


def test_a_bar_is_as_long_as_its_part_of_the_largest_figure() -> None:
    bars = (Bar(name="half", value=50, limit=100), Bar(name="all", value=100, wrong=True), Bar(name="none"))
    chart = BarChart(title="t", unit="%", bars=bars)
    back, half, whole, none = ElementTree.fromstring(svg_file([chart])).iter(f"{SVG}rect")
    assert back.get("fill") == "white"
    assert float(half.get("width") or 0) * 2 == pytest.approx(float(whole.get("width") or 0))
    assert none.get("width") == "0.0" and half.get("fill") != whole.get("fill")
    assert [chart.label(bar) for bar in bars] == ["50 % (limit 100)", "100 %", "not tested"]


def test_curves_in_a_terminal_rise_and_end_with_their_figure() -> None:
    lines = (Line("a", ((0, 0), (1, 50), (2, 100))), Line("long", ((0, 0), (2, 12.34))), Line("none", ()))
    chart = LineChart(title="allocated", axis="pods", unit="%", top=100, lines=lines)
    assert text_chart(chart, 80) == ["allocated", "  a     ▁▅█  100 %", "  long  ▁▁  12.3 %", "  none  -"]
    assert text_chart(chart, 80, ascii_only=True)[1] == "  a     _=#  100 %"


def test_bars_in_a_terminal_have_the_limit_as_a_mark() -> None:
    chart = BarChart(title="t", unit="%", bars=(Bar(name="x", value=5, limit=10), Bar(name="yy")))
    assert text_chart(chart, 34, ascii_only=True) == [
        "t",
        "  x   ######     |  5 % (limit 10)",
        "  yy                not tested",
    ]


def test_characters_that_xml_does_not_allow_are_replaced() -> None:
    assert printable("a\x00b\ud800c<&") == "a\ufffdb\ufffdc<&"
