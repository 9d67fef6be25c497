"""Every kind of memory stops at the limit, and the driver itself counts no more."""

import json
from collections.abc import Iterator

from lamina.errors import Outside
from lamina.model.quantities import MIB
from lamina.verify.machine import Site, answer
from lamina.verify.rows import Row, judged, untested

KINDS = ("plain", "managed", "pitched", "pool", "virtual", "array")
_LEFT = {"plain": 0, "managed": 0, "pool": 64 * MIB}
"""Bytes that may stay unused: nothing where a single byte can be asked for, else a block, and for pools their steps."""
_OUT_OF_MEMORY = 2


def memory(site: Site, limit_mib: int) -> Iterator[Row]:
    """Two rows for each kind: what a tenant got with its context, and what the driver says that it holds."""
    for kind in KINDS:
        try:
            yield from _kind(site, kind, limit_mib * MIB)
        except Outside as failed:
            yield untested("memory", kind, str(failed))


def _kind(site: Site, kind: str, limit: int) -> Iterator[Row]:
    tenant = site.start(site.held(limit // MIB), "memory", kind, str(limit))
    assert tenant.stdout is not None
    line = tenant.stdout.readline()
    try:
        if not line:
            answer(tenant)
        said = json.loads(line)
        driver = _driver_figure(site, tenant.pid)
    finally:
        tenant.kill()
        tenant.communicate()
    held = said["context"] + said["got"]
    row = judged("memory", f"{kind}, to the byte", "bytes", limit, held, below=_LEFT.get(kind, 2 * MIB - 1), above=0)
    if said["refused"] != _OUT_OF_MEMORY:
        row.verdict, row.note = "FAILED", f"the refusal is error {said['refused']} instead of 2"
    yield row
    what = f"{kind}, as the driver counts"
    if kind == "managed" and not site.simulated:
        yield untested("memory", what, "the driver does not count managed memory that nobody has touched")
    elif driver is None:
        yield untested("memory", what, "NVML does not tell this process's memory, as in some containers")
    else:
        yield judged("memory", what, "bytes", limit, driver, below=limit, above=2 * MIB)


def _driver_figure(site: Site, pid: int) -> int | None:
    found = site.ask(site.free(), "figures", site.gpu.uuid)["processes"]
    assert isinstance(found, dict)
    figure = found.get(str(pid))
    return None if figure is None else int(figure)
