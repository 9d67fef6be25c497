"""Charts of plain numbers: as SVG, as text for a terminal, and on an HTML page that loads nothing.

shapes   what a chart is: lines over a common axis, or bars with a limit each
svg      charts to SVG
text     charts to lines of text
page     charts, facts and tables to one HTML file
"""

from lamina.operations.charts.page import HtmlTable, html_page
from lamina.operations.charts.shapes import Bar, BarChart, Chart, Line, LineChart
from lamina.operations.charts.svg import svg_file
from lamina.operations.charts.text import text_chart

__all__ = ["Bar", "BarChart", "Chart", "HtmlTable", "Line", "LineChart", "html_page", "svg_file", "text_chart"]
