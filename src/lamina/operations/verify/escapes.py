"""Ways around the facade that an ordinary program could try, where nothing but a preload holds it."""

from collections.abc import Iterator

from lamina.core.quantities import MIB
from lamina.errors import Outside
from lamina.operations.verify.machine import Site
from lamina.operations.verify.report import CheckResult, judged, untested

HELD = ("named", "cuGetProcAddress", "per-thread stream", "fork", "child")
KNOWN = ("absolute path", "no preload")
"""What a preload does not cover, as the guide says; in a container the facade lies over the driver's own files."""

LEFT_MIB = 64
"""What a program may leave unused: a pool grows in steps. One that gets less has not tried the limit."""


def escapes(site: Site, limit_mib: int) -> Iterator[CheckResult]:
    """What each escape got. Those that are known to work are shown as such."""
    for escape in (*HELD, *KNOWN):
        library = str(site.driver / "libcuda.so.1")
        try:
            answer = site.ask(site.held(limit_mib), "escape", escape, str(limit_mib * MIB), library)
        except Outside as failed:
            yield untested("escapes", escape, str(failed))
            continue
        if "got" not in answer:
            yield untested("escapes", escape, str(answer.get("why")))
            continue
        used = (answer["context"] + answer["got"]) / MIB
        row = judged("escapes", escape, "MiB", limit_mib, used, below=LEFT_MIB, above=0)
        if escape in KNOWN and used > limit_mib:
            row.verdict, row.note = "known", "a preload does not hold this; a container does"
        elif used < limit_mib - LEFT_MIB:
            row.note = "this was refused before it reached the limit"
        yield row
    yield untested("escapes", "a container's own files", "this is not a container")
