"""The share of the GPU's time that a tenant gets, against the share that it was granted."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lamina.errors import Outside
from lamina.verify.machine import KERNELS, Site, answer
from lamina.verify.rows import Row, judged, untested

POINTS = 2.0
"""A share is held when it is this near, in percent of the GPU's time."""
KERNEL_MS = 1.0
PAIR = (30, 60)


def compute(site: Site, shares: Sequence[int], seconds: float) -> Iterator[Row]:
    """Without limits first, which tells how much of the time such a program uses; then each share; then two at once."""
    try:
        whole = site.ask(site.free(), *_task(seconds))["percent"]
    except Outside as failed:
        yield untested("compute", "share of the GPU's time", str(failed))
        return
    yield Row(check="compute", what="without limits", limit=100, measured=whole, unit="%", verdict="ok")
    if whole < 90:
        yield untested(
            "compute", "share of the GPU's time", "others use this GPU, or its processors are too busy to feed it"
        )
        return
    for share in shares:
        yield _judged(f"{share} %", share, site.ask(site.held(cores=share), *_task(seconds))["percent"])
    tenants = [site.start(site.held(cores=share), *_task(seconds)) for share in PAIR]
    try:
        got = [answer(tenant)["percent"] for tenant in tenants]
    finally:
        for tenant in tenants:
            with suppress(ProcessLookupError):
                tenant.kill()
    for share, percent in zip(PAIR, got, strict=True):
        yield _judged(f"{share} % of {' and '.join(map(str, PAIR))} % at once", share, percent)


def _task(seconds: float) -> tuple[str, ...]:
    return ("compute", str(KERNEL_MS), "1", str(seconds), str(KERNELS))


def _judged(what: str, share: int, percent: float) -> Row:
    return judged("compute", what, "%", share, percent, below=POINTS, above=POINTS)
