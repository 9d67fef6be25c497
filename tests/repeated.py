"""With --last-failed, a test that failed before fails again where it is skipped: skipping proves nothing about it."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _failed_before(item):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"failed before, and was skipped when repeated: {reason}"
    return report


def _failed_before(item: pytest.Item) -> bool:
    """The cache is written when a run ends. With `-p no:cacheprovider` there is none, and nothing can be repeated."""
    cache = getattr(item.config, "cache", None)
    return bool(cache and item.config.getoption("lf", False) and item.nodeid in cache.get("cache/lastfailed", {}))
