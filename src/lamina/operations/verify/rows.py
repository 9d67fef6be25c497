"""One line of the report: what was granted, what was measured, and how far they are apart."""

from msgspec import Struct


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
