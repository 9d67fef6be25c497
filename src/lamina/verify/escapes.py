"""Ways around the facade that an ordinary program could try, where nothing but a preload holds it."""

from collections.abc import Iterator

from lamina.errors import Outside
from lamina.model.quantities import MIB
from lamina.verify.machine import Site
from lamina.verify.rows import Row, judged, untested

HELD = ("named", "cuGetProcAddress", "per-thread stream", "fork", "child")
KNOWN = ("absolute path", "no preload")
"""What a preload does not cover, as the guide says; in a container the facade lies over the driver's own files."""


def escapes(site: Site, limit_mib: int) -> Iterator[Row]:
    """What each way got. One that is known to lead around is shown as such."""
    for way in (*HELD, *KNOWN):
        library = str(site.driver / "libcuda.so.1")
        try:
            said = site.ask(site.held(limit_mib), "escape", way, str(limit_mib * MIB), library)
        except Outside as failed:
            yield untested("escapes", way, str(failed))
            continue
        if "got" not in said:
            yield untested("escapes", way, str(said.get("why")))
            continue
        row = judged("escapes", way, "MiB", limit_mib, said["got"] / MIB, below=limit_mib, above=0)
        if way in KNOWN and row.verdict == "FAILED":
            row.verdict, row.note = "known", "a preload does not hold this; a container does"
        yield row
    yield untested("escapes", "a container's own files", "this is not a container")
