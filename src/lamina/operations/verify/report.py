"""The results of `lamina verify`: a row for each check, as cells of a table, as charts, and as a page for a ticket."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina.core.quantities import MIB
from lamina.operations.charts import Bar, BarChart, HtmlTable, html_page

HEAD = ("check", "what", "limit", "measured", "error", "unit", "verdict", "note")
_CHARTS = {
    "compute": ("share of the GPU's time", "%", "limit"),
    "memory": ("memory that a program got", "MiB", "limit"),
    "escapes": ("memory that a way around the facade got", "MiB", "limit"),
    "overhead": ("CPU time of a call", "ns", "without Lamina"),
}
"""The title, unit and meaning of the limit by check."""


class CheckResult(Struct, kw_only=True):
    """`error` is measured less limit, so a positive one is too much. Without figures the note says why."""

    check: str
    what: str
    limit: float | None = None
    measured: float | None = None
    unit: str = ""
    verdict: str
    """ok, FAILED, known (a way around that the guide names), reported (nothing to judge by), or not tested."""
    note: str = ""

    @property
    def error(self) -> float | None:
        """Signed."""
        return None if self.limit is None or self.measured is None else self.measured - self.limit


def judged(
    check: str, what: str, unit: str, limit: float, measured: float, *, below: float, above: float
) -> CheckResult:
    """A row that is well while the error is within -below..above."""
    well = -below <= measured - limit <= above
    return CheckResult(
        check=check, what=what, limit=limit, measured=measured, unit=unit, verdict="ok" if well else "FAILED"
    )


def untested(check: str, what: str, why: str) -> CheckResult:
    """A row for what could not be tried."""
    return CheckResult(check=check, what=what, verdict="not tested", note=why)


def charts(rows: Sequence[CheckResult]) -> list[BarChart]:
    """One for each check that has figures. What was not tested has a bar without length that says so."""
    found = []
    for check, (title, unit, limit) in _CHARTS.items():
        mine = [row for row in rows if row.check == check and (row.limit is not None or row.verdict == "not tested")]
        if any(row.limit is not None for row in mine):
            bars = tuple(_bar(row) for row in mine)
            found.append(BarChart(title=f"{check}: {title}", unit=unit, limit_means=limit, bars=bars))
    return found


def page(rows: Sequence[CheckResult], facts: Mapping[str, str]) -> bytes:
    """The page. `facts` are shown first, then those that the rows report about the machine."""
    failed = sum(row.verdict == "FAILED" for row in rows)
    skipped = sum(row.verdict == "not tested" for row in rows)
    verdict = {"result": f"{len(rows)} checks: {failed} failed, {skipped} not tested"}
    machine = {row.what: row.note for row in rows if row.check == "machine"}
    wrong = frozenset(place for place, row in enumerate(rows) if row.verdict == "FAILED")
    table = HtmlTable(title="All checks", head=HEAD, rows=tuple(map(cells, rows)), wrong=wrong)
    return html_page("Limits on this machine", {**verdict, **facts, **machine}, charts(rows), [table])


def cells(row: CheckResult) -> tuple[str, ...]:
    """The row as texts, in the order of HEAD. The error has a sign: what is too much is positive."""
    digits = 1 if row.unit in ("%", "ns") else 0
    limit, measured = ("" if value is None else f"{value:,.{digits}f}" for value in (row.limit, row.measured))
    error = "" if row.error is None else f"{row.error:+,.{digits}f}"
    return row.check, row.what, limit, measured, error, row.unit, row.verdict, row.note


def _bar(row: CheckResult) -> Bar:
    scale = MIB if row.unit == "bytes" else 1
    measured, limit = (None if value is None else value / scale for value in (row.measured, row.limit))
    return Bar(name=row.what, value=measured, limit=limit, absent=row.verdict, wrong=row.verdict == "FAILED")
