"""All checks, one after the other."""

import math
from collections.abc import Iterator, Sequence

from lamina.core.quantities import MemoryAmount
from lamina.errors import BadInput, LaminaError, Outside
from lamina.operations.verify.compute import compute
from lamina.operations.verify.escapes import escapes
from lamina.operations.verify.machine import Site, site
from lamina.operations.verify.memory import memory
from lamina.operations.verify.overhead import overhead
from lamina.operations.verify.report import CheckResult, untested
from lamina.operations.verify.views import views

SHARES = (10, 30, 50, 70)
SECONDS = 4.0
MEMORY = MemoryAmount(2048)


def verify(
    *, gpu: str = "", simulate: str | None = None, memory: MemoryAmount = MEMORY, shares: Sequence[int] = SHARES,
    seconds: float = SECONDS, rounds: int = 9, enforced: bool = True,
) -> Iterator[CheckResult]:  # fmt: skip
    """Rows as they become known. Raises BadInput for settings that make no sense, and LaminaError without a GPU.

    `enforced=False` leaves the facade out; then the checks must fail, which is how they are tested themselves.
    """
    if any(not 1 <= share <= 99 for share in shares):
        raise BadInput(f"--shares must be integers from 1 to 99, got {','.join(map(str, shares))}")
    if not (math.isfinite(seconds) and 0.5 <= seconds <= 600):
        raise BadInput(f"--seconds must be from 0.5 to 600, got {seconds:g}")
    try:
        with site(gpu, simulate, enforced=enforced) as found:
            memory_mib = memory.of(found.gpu.memory_mib, where="--memory")
            if not 1024 <= memory_mib < found.gpu.memory_mib - 1024:
                most = found.gpu.memory_mib - 1025
                raise BadInput(
                    f"--memory must be from 1024 to {most} MiB on GPU {found.gpu.index}, got {memory_mib} MiB"
                )
            yield from _all(found, memory_mib, shares, seconds, rounds)
    except Outside as failed:
        raise LaminaError(str(failed)) from failed


def _all(found: Site, memory_mib: int, shares: Sequence[int], seconds: float, rounds: int) -> Iterator[CheckResult]:
    yield from facts(found)
    yield from memory(found, memory_mib)
    yield from views(found, memory_mib)
    yield from compute(found, shares, seconds)
    yield from overhead(found, rounds)
    yield from escapes(found, memory_mib)


def facts(site: Site) -> Iterator[CheckResult]:
    """Rows without figures; their notes are the facts."""
    gpu = site.gpu
    kind = "simulated " if site.simulated else ""
    yield _fact(f"GPU {gpu.index}", f"{kind}{gpu.name}, {gpu.memory_mib} MiB, {gpu.uuid}")
    try:
        versions = site.ask(site.free(), "versions")
    except Outside as failed:
        yield untested("machine", "driver", str(failed))
        return
    cuda = int(versions["cuda"])
    yield _fact("driver", f"{versions['driver']}, CUDA {cuda // 1000}.{cuda % 1000 // 10}")


def _fact(what: str, note: str) -> CheckResult:
    return CheckResult(check="machine", what=what, verdict="reported", note=note)
