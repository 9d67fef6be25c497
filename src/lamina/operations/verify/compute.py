"""The share of the GPU's time that a tenant gets, against the share that it was granted."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from lamina.errors import Outside
from lamina.operations.verify.machine import Site, answer
from lamina.operations.verify.report import CheckResult, judged, untested

POINTS = 2.0
"""A share is held when it is this near, in percent of the GPU's time."""
IDLE_POINTS = 10.0
"""What a program without limits may leave unused, in percent of the GPU's time, before shares cannot be measured."""
KERNEL_MS = 1.0
MIN_KERNEL = 0.9
"""Of KERNEL_MS, on average over a batch; a GPU whose clock ticks once a millisecond ends the first kernel early."""
PAIR = (30, 60)
_SHARES = "share of the GPU's time"


def compute(site: Site, shares: Sequence[int], seconds: float) -> Iterator[CheckResult]:
    """Without limits first, which shows whether time can be measured at all; then each share; then two at once."""
    try:
        first = _without_limits(site.ask(site.free(), *_task(seconds)))
    except Outside as failed:
        yield untested("compute", _SHARES, str(failed))
        return
    yield first
    if first.verdict != "ok":
        yield untested("compute", _SHARES, first.note)
        return
    for share in shares:
        yield _judged(f"{share} %", share, site.ask(site.held(cores=share), *_task(seconds)))
    tenants = [site.start(site.held(cores=share), *_task(seconds)) for share in PAIR]
    try:
        answers = [answer(tenant) for tenant in tenants]
    finally:
        for tenant in tenants:
            with suppress(ProcessLookupError):
                tenant.kill()
    for share, got in zip(PAIR, answers, strict=True):
        yield _judged(f"{share} % of {' and '.join(map(str, PAIR))} % at once", share, got)


def _task(seconds: float) -> tuple[str, ...]:
    return ("compute", str(KERNEL_MS), "1", str(seconds))


def _without_limits(got: Mapping[str, float]) -> CheckResult:
    """More than all of the time is a failure: then the kernels did not run, or the clocks are wrong."""
    row = judged("compute", "without limits", "%", 100, got["percent"], below=IDLE_POINTS, above=POINTS)
    row = _with_kernels_of_full_length(row, got["kernel_ms"])
    if row.verdict == "FAILED":
        if got["percent"] < 100:
            row.verdict = "not tested"
            row.note = "others use this GPU, or its processors are too busy to feed it"
        else:
            row.note = "this is no share of the GPU's time, so none can be measured here"
    return row


def _judged(what: str, share: int, got: Mapping[str, float]) -> CheckResult:
    row = judged("compute", what, "%", share, got["percent"], below=POINTS, above=POINTS)
    return _with_kernels_of_full_length(row, got["kernel_ms"])


def _with_kernels_of_full_length(row: CheckResult, kernel_ms: float) -> CheckResult:
    """The row, without its figure if kernels ended early: then their number says nothing about the GPU's time."""
    if kernel_ms >= MIN_KERNEL * KERNEL_MS:
        return row
    note = f"kernels of {KERNEL_MS:g} ms ended after {kernel_ms:.2g} ms, so the driver did not run them in full"
    return untested(row.check, row.what, note)
