"""What was looked at: the GPU and the versions of its driver, so that a report stands by itself."""

from collections.abc import Iterator

from lamina.errors import Outside
from lamina.operations.verify.machine import Site
from lamina.operations.verify.rows import CheckResult, untested


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
