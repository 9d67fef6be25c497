"""Says at the end of a run how many tests were skipped, by reason: what this machine or this user could not try."""

from collections import Counter

import pytest
from _pytest.terminal import TerminalReporter


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    reasons = Counter(map(_reason, terminalreporter.getreports("skipped")))
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} skipped, by reason")
    for reason, times in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        terminalreporter.write_line(f"{times:5}  {reason}")


def _reason(report: pytest.TestReport) -> str:
    """The first line of what the test or its mark said."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return next(iter(said.removeprefix("Skipped: ").splitlines()), "no reason given")
