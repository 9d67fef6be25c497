"""How much of the work that containers report on one GPU is believed. Pure but for what it remembers.

Each container writes its own `usage`, and what it reports there gives time to others: its neighbors are not charged for
its work, and gates close for its priority. So a report counts only as far as the driver confirms it, and what was
reported of a moment cannot be taken back.

Reports are paid from a credit of GPU time, to which the driver's figures are added. What the driver has not reported
yet is believed as long as the credit lasts, so an honest container, whose work the driver reports a little later, is
always believed, and a lie is believed for as much time as the credit is. What the driver reports and a container does
not counts as well, once there is much of it: who hides work would take time for which its neighbors are charged.

A driver that only samples is right over minutes, and wrong by seconds meanwhile. Where it does, credits are larger, and
differences up to its bias are forgotten, so that chance uses up no credit of an honest container.

Example: a container with an idle context reports that it has work all the time. The driver reports no work, so of 1500
ms its neighbors get a part back, and of what it reports later only one percent of the GPU's time counts.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from lamina.enforcement import layout
from lamina.enforcement.activity import NOTHING, WINDOW, Activity, Fractions
from lamina.enforcement.driver_figures import Confirmation

GATE_CREDIT_MS = 2000.0
"""For how long the gates of lower priorities close before the driver has reported any work."""
RESERVE_MS = 150.0
"""A container with less credit than this is believed in part, and hidden work counts in full when there is more of it
than this, so that neither begins suddenly."""
GATES_PER_WORK = 8.0
"""For how long a container with a ms of confirmed work may signal work: others of its priority have the GPU too."""


class Trust(Struct, frozen=True, kw_only=True):
    """How far what the driver says may be from what containers report, as long as both are right."""

    credit_ms: float
    """How much work a container may report that the driver has not."""
    hidden_ms: float
    """How much work only the driver may report, as it does for a moment when a container has stopped."""
    tolerance: float
    """Which part of the GPU's time a report may always differ from the driver's figure."""
    gate_credit_ms: float
    """For how long the gates of lower priorities may stay closed after the driver has reported work."""


MEASURED = Trust(credit_ms=1500, hidden_ms=1500, tolerance=0.01, gate_credit_ms=GATE_CREDIT_MS)
"""Of a driver that reports the average of a second in whole percents, and is asked up to half a second later."""
SAMPLED = Trust(credit_ms=4000, hidden_ms=4000, tolerance=0.15, gate_credit_ms=10_000)
"""Of a driver that gives all of each 200 ms to one process, and in averages is off by up to twelve points. A sample
changes the credit of a container with a share of 30 % by 92 ms more or less than is right, and 30 ms are forgotten: the
credit of an honest container does not run out."""


class ReportedWork(Struct, frozen=True):
    """A container's work on one GPU by its own report. `own` is the part of the GPU's time that belongs to it.

    Without a confirmation the container is taken at its word, which is for containers of one user.
    """

    name: str
    activity: Activity
    confirmed: Confirmation | None
    own: float

    @property
    def measured(self) -> float:
        """The work that the driver reports, per ms."""
        return 0.0 if self.confirmed is None else self.confirmed.work or 0.0

    def income(self, tolerance: float) -> float:
        """Credit that is added per ms. What the driver cannot confirm counts as far as its own share goes."""
        if self.confirmed is None:
            return 1.0
        return (self.own if self.confirmed.work is None else self.confirmed.work) + tolerance

    @property
    def gate_income(self) -> float:
        """Likewise for closing gates. Work that the driver cannot confirm closes none."""
        if self.confirmed is None:
            return 1.0
        return (self.confirmed.work or 0.0) * GATES_PER_WORK

    @property
    def is_there(self) -> bool:
        """Whether the driver knows a process of the container on the GPU, or cannot say."""
        return self.confirmed is None or self.confirmed.processes != 0


class WorkCredit:
    """The reports of one GPU's containers during the window, and what credit they have left."""

    def __init__(self) -> None:
        self._last = 0
        self._trust = MEASURED
        self._credit: dict[str, float] = {}
        self._gates: dict[str, float] = {}
        self._names: list[str] = []
        self._known: Fractions = np.zeros((_ROWS, 0, WINDOW))
        """By `_BRIEF` and so on, container and ms: what was reported, how many processes there were, and which part of
        the report is believed. The last two are decided when a ms is first looked at."""
        self._charged: Fractions = np.zeros((0, WINDOW))
        """What was believed that each container got, by container and ms."""

    def believe(self, reports: Sequence[ReportedWork], now: int, trust: Trust) -> list[Activity]:
        """The believed part of each activity, and work that was not reported."""
        last = now // layout.BIN_NS
        elapsed = last - self._last if self._last and last >= self._last else WINDOW
        moved, self._last = min(elapsed, WINDOW), last
        self._trust = trust
        self._add_credit(reports, elapsed)
        rows = [report for report in reports if self._matters(report)]
        names = [report.name for report in rows]
        self._charged = _aligned(self._charged, self._names, names, moved)
        self._known = known = self._reported(rows, _aligned(self._known, self._names, names, moved), WINDOW - moved)
        self._names = names
        worked = np.minimum(known[_WORKED], known[_MAX_AT_WORK]) * known[_PART]
        brief = known[_BRIEF] * np.minimum(known[_MAX_AT_WORK], 1) * known[_PART]
        unfinished = np.minimum(known[_UNFINISHED], known[_MAX_AT_WORK]) * known[_PART]
        found = {
            name: _believed(report.activity, *each)
            for name, report, each in zip(names, rows, _rows(brief, worked, unfinished), strict=True)
        }
        self._forget_rows(known[:_MAX_AT_WORK].max(axis=(0, 2), initial=0).tolist())
        return [found.get(report.name, report.activity) for report in reports]

    def may_be_first(self, report: ReportedWork, signals: bool, elapsed_ms: float) -> bool:
        """Whether the work of a container may come before that of lower priorities. Credit is spent while it signals
        work."""
        left = self._gates[report.name]
        if signals:
            self._gates[report.name] = max(0.0, left - elapsed_ms)
        return report.is_there and left > 0

    def charge(self, real: Mapping[str, Fractions]) -> None:
        """Pay for what the believed reports gave each container. What shrinks is paid back, because then its neighbors
        are charged again, too."""
        places = [row for row, name in enumerate(self._names) if name in real]
        if not places:
            return
        got = np.array([real[self._names[row]] for row in places])
        more = got - self._charged[places]
        self._charged[places] += more
        for row, price in zip(places, more.sum(axis=1).tolist(), strict=True):
            self._credit[self._names[row]] -= price

    def _reported(self, rows: Sequence[ReportedWork], before: Fractions, kept: int) -> Fractions:
        """What is reported now, without what contradicts earlier reports: of a ms that has passed, finished work only
        grows and unfinished work only shrinks."""
        known = np.empty((_ROWS, len(rows), WINDOW))
        if not rows:
            return known
        known[_BRIEF] = [report.activity.brief for report in rows]
        known[_WORKED] = [report.activity.worked for report in rows]
        known[_UNFINISHED] = [report.activity.unfinished for report in rows]
        known[_MAX_AT_WORK] = [[_most(report)] for report in rows]
        known[_PART] = [[self._part(report)] for report in rows]
        passed = max(0, kept - 1)  # of the last one that was looked at, a part was still to come
        hidden = [[self._hidden(report)] for report in rows]
        known[_WORKED, :, passed:] = np.maximum(known[_WORKED, :, passed:], hidden)
        known[:_UNFINISHED, :, :passed] = np.maximum(known, before)[:_UNFINISHED, :, :passed]
        known[_UNFINISHED, :, :passed] = np.minimum(known, before)[_UNFINISHED, :, :passed]
        same = [row for row, report in enumerate(rows) if report.name in self._names]
        known[_MAX_AT_WORK:, same, :passed] = before[_MAX_AT_WORK:, same, :passed]
        return known

    def _part(self, report: ReportedWork) -> float:
        return 1.0 if report.confirmed is None else min(1.0, max(0.0, self._credit[report.name]) / RESERVE_MS)

    def _hidden(self, report: ReportedWork) -> float:
        """For which part of the time a container works by the driver's figures that does not report it."""
        return min(1.0, max(0.0, self._credit[report.name] - self._most_hidden) / RESERVE_MS)

    def _matters(self, report: ReportedWork) -> bool:
        return report.activity.active or report.name in self._names or self._hidden(report) > 0

    @property
    def _most_hidden(self) -> float:
        """The credit beyond which work is hidden."""
        return self._trust.credit_ms + self._trust.hidden_ms

    def _add_credit(self, reports: Sequence[ReportedWork], elapsed: int) -> None:
        """A container that is alone owes nothing, because nothing is decided by what it reports."""
        trust = self._trust
        if len(reports) == 1:
            self._credit, self._gates = {reports[0].name: trust.credit_ms}, {reports[0].name: GATE_CREDIT_MS}
        for report in reports:
            credit, gates = self._credit.get(report.name, trust.credit_ms), self._gates.get(report.name, GATE_CREDIT_MS)
            forgotten = min(trust.tolerance * elapsed, max(0.0, credit - trust.credit_ms))
            earned = min(self._most_hidden + RESERVE_MS, credit - forgotten + report.measured * elapsed)
            income = report.income(trust.tolerance) * elapsed
            self._credit[report.name] = max(earned, min(trust.credit_ms, credit + income))
            self._gates[report.name] = min(trust.gate_credit_ms, gates + report.gate_income * elapsed)
        if len(self._credit) > len(reports):
            for name in self._credit.keys() - {report.name for report in reports}:
                del self._credit[name], self._gates[name]

    def _forget_rows(self, most: Sequence[float]) -> None:
        """Those in whose window nothing is left; `most` has the most that each reports of any ms."""
        if not all(most):
            used = [row for row, reported in enumerate(most) if reported]
            self._names = [self._names[row] for row in used]
            self._known, self._charged = self._known[:, used], self._charged[used]


_BRIEF, _WORKED, _UNFINISHED, _MAX_AT_WORK, _PART, _ROWS = range(6)


def _aligned(values: Fractions, names: Sequence[str], wanted: Sequence[str], moved: int) -> Fractions:
    """The same for other containers, and a window that has moved; what is not known is 0."""
    result = np.zeros((*values.shape[:-2], len(wanted), WINDOW))
    if wanted == names:
        result[..., : WINDOW - moved] = values[..., moved:]
        return result
    places = [(row, names.index(name)) for row, name in enumerate(wanted) if name in names]
    if places and moved < WINDOW:
        to, origin = map(list, zip(*places, strict=True))
        result[..., to, : WINDOW - moved] = values[..., origin, moved:]
    return result


def _most(report: ReportedWork) -> float:
    """How many processes the container can have at work."""
    most = report.confirmed.processes if report.confirmed is not None else None
    return np.inf if most is None else most


def _rows(*parts: Fractions) -> Iterator[list[Fractions]]:
    """The row of each container in all parts; NOTHING for one without any work."""
    there = [part.max(axis=1, initial=0).tolist() for part in parts]
    for row in range(len(parts[0])):
        yield [part[row] if found[row] else NOTHING for part, found in zip(parts, there, strict=True)]


def _believed(activity: Activity, brief: Fractions, worked: Fractions, unfinished: Fractions) -> Activity:
    return Activity(
        brief=brief,
        worked=worked,
        unfinished=unfinished,
        asked_at=activity.asked_at,
        waited_at=activity.waited_at,
        charged_ns=activity.charged_ns,
    )
