"""Results as charts: what is allocated, and what is stranded of the rest, while pods come."""

from collections.abc import Sequence

from lamina.operations.charts import HtmlTable, Line, LineChart, html_page
from lamina.simulation.replay import Point, Result


def charts(results: Sequence[Result]) -> list[LineChart]:
    """Allocated, then stranded, with a curve for each policy. The results are over the same pods."""

    def chart(title: str, value: str) -> LineChart:
        lines = tuple(
            Line(result.policy, tuple(_percent(point, value) for point in result.points)) for result in results
        )
        return LineChart(title=title, axis="pods that have come", unit="%", top=100, lines=lines)

    return [chart("allocated, % of all GPUs", "allocated"), chart("stranded, % of what is free", "stranded")]


def page(results: Sequence[Result], facts: dict[str, str]) -> bytes:
    """An HTML page: the charts, the figures at the end, and why pods wait."""
    head = ("policy", "requested", "allocated", "stranded", "placed", "waiting")
    ends = tuple(_end(result) for result in results)
    reasons = tuple((result.policy, str(count), reason) for result in results for reason, count in result.reasons)
    tables = [HtmlTable(title="At the end", head=head, rows=ends)]
    if reasons:
        tables.append(HtmlTable(title="Why pods wait", head=("policy", "pods", "reason"), rows=reasons))
    return html_page("Policies compared", facts, charts(results), tables)


def _end(result: Result) -> tuple[str, ...]:
    end = result.end
    parts = (f"{100 * part:.2f} %" for part in (end.asked, end.allocated, end.stranded))
    return result.policy, *parts, str(result.placed), str(end.waiting)


def _percent(point: Point, value: str) -> tuple[float, float]:
    return float(point.pods), 100 * float(getattr(point, value))
