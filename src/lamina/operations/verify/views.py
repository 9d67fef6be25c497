"""CUDA, NVML and nvidia-smi tell the limit and not the card."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lamina.core.quantities import MIB
from lamina.errors import Outside
from lamina.operations.verify.machine import Site
from lamina.operations.verify.report import CheckResult, judged, untested

_QUERY = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")


def views(site: Site, limit_mib: int) -> Iterator[CheckResult]:
    """The total that each tells, the number of GPUs, and nvidia-smi's words."""
    variables = site.held(limit_mib)
    try:
        totals = site.ask(variables, "views")
    except Outside as failed:
        yield untested("views", "CUDA and NVML", str(failed))
        return
    for name in ("cuMemGetInfo", "cuDeviceTotalMem", "NVML"):
        yield judged("views", f"{name}, total", "MiB", limit_mib, totals[name] / MIB, below=0, above=0)
    for name in ("devices", "NVML devices"):
        yield judged("views", name, "", 1, totals[name], below=0, above=0)
    yield judged("views", "processes that NVML lists", "", 1, totals["processes"], below=1, above=0)
    for name in ("lamina-smi", "nvidia-smi"):
        program = _program(name)
        if program is None or (name == "nvidia-smi" and site.simulated):
            why = f"there is no {name} on the PATH" if program is None else "the GPU is simulated"
            yield untested("views", f"{name}, total", why)
            continue
        done = subprocess.run([program, *_QUERY], env=variables, capture_output=True, text=True, check=False)
        lines = done.stdout.split()
        if done.returncode != 0 or len(lines) != 1 or not lines[0].isdigit():
            words = (done.stdout + done.stderr).strip()[-100:]
            yield CheckResult(check="views", what=f"{name}, total", verdict="FAILED", note=f"it says {words!r}")
        else:
            yield judged("views", f"{name}, total", "MiB", limit_mib, int(lines[0]), below=0, above=0)


def _program(name: str) -> str | None:
    """The program of that name next to this Python, or on the PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
