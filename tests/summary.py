"""What a run says at its end: how many tests were skipped, by reason, and which files took longest.

Files run side by side, each by one process, so the time of a run is that of its files.
"""

from collections import Counter
from collections.abc import Iterable

import pytest
from _pytest.terminal import TerminalReporter

SHOWN_FILES, FROM_S = 25, 20.0


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    _slow_files(terminalreporter)
    reasons = Counter(map(_reason, terminalreporter.getreports("skipped")))
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} skipped, by reason")
    for reason, times in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        terminalreporter.write_line(f"{times:5}  {reason}")


def _slow_files(terminalreporter: TerminalReporter) -> None:
    seconds = seconds_by_file(each for reports in terminalreporter.stats.values() for each in reports)
    slow = [(file, total) for file, total in seconds.most_common(SHOWN_FILES) if total >= FROM_S]
    if slow:
        terminalreporter.section(f"slowest files, of {seconds.total():.0f} s in all")
    for file, total in slow:
        terminalreporter.write_line(f"{total:5.0f} s  {file}")


def seconds_by_file(reports: Iterable[object]) -> "Counter[str]":
    """What the setup, the call and the teardown of the tests of each file took."""
    found: Counter[str] = Counter()
    for report in reports:
        if isinstance(report, pytest.TestReport):
            found[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]
    return found


def _reason(report: pytest.TestReport) -> str:
    """The first line of what the test or its mark said."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return next(iter(said.removeprefix("Skipped: ").splitlines()), "no reason given")
