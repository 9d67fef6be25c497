"""Every kind of memory stops at the limit, and the driver itself counts no more."""

import json
from collections.abc import Iterator

from lamina.core.quantities import MIB
from lamina.errors import Outside
from lamina.operations.verify.machine import Site, answer
from lamina.operations.verify.report import CheckResult, judged, untested

KINDS = ("plain", "managed", "pitched", "pool", "virtual", "array", "small")
_BLOCK = 2 * MIB
_LEFT = {"pool": 64 * MIB}
"""Bytes that may stay unused: less than a block of the driver, and for pools their steps."""
_OUT_OF_MEMORY = 2


def memory(site: Site, limit_mib: int) -> Iterator[CheckResult]:
    """Two rows for each kind: what a tenant got with its context, and what the driver says that it holds."""
    for kind in KINDS:
        try:
            yield from _kind(site, kind, limit_mib * MIB)
        except Outside as failed:
            yield untested("memory", kind, str(failed))


def _kind(site: Site, kind: str, limit: int) -> Iterator[CheckResult]:
    tenant = site.start(site.held(limit // MIB), "memory", kind, str(limit))
    assert tenant.stdout is not None
    line = tenant.stdout.readline()
    try:
        if not line:
            answer(tenant)
        report = json.loads(line)
        driver = _driver_figure(site, tenant.pid)
    finally:
        tenant.kill()
        tenant.communicate()
    held = report["context"] + report["got"]
    # Of small allocations the program does not know what they take.
    below = report["got"] if kind == "small" else _LEFT.get(kind, _BLOCK - 1)
    row = judged("memory", f"{kind}, as asked for", "bytes", limit, held, below=below, above=0)
    if report["refused"] != _OUT_OF_MEMORY:
        row.verdict, row.note = "FAILED", f"the refusal is error {report['refused']} instead of 2"
    yield row
    what = f"{kind}, as the driver counts"
    if kind == "managed" and not site.simulated:
        yield untested("memory", what, "the driver does not count managed memory before it is touched")
    elif driver is None:
        yield untested("memory", what, "NVML does not tell this process's memory, as in some containers")
    else:
        # It may count a context differently, but no less than what the program took.
        yield judged("memory", what, "bytes", limit, driver, below=limit - report["got"], above=_BLOCK)


def _driver_figure(site: Site, pid: int) -> int | None:
    found = site.ask(site.free(), "figures", site.gpu.uuid)["processes"]
    assert isinstance(found, dict)
    figure = found.get(str(pid))
    return None if figure is None else int(figure)
