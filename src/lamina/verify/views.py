"""CUDA, NVML and nvidia-smi tell the limit and not the card."""

import shutil
import subprocess
import sys
from collections.abc import Iterator

from lamina.errors import Outside
from lamina.model.quantities import MIB
from lamina.verify.machine import Site
from lamina.verify.rows import Row, judged, untested

_SMI = "import sys; from lamina.smi.main import main; sys.exit(main())"
_QUERY = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")


def views(site: Site, limit_mib: int) -> Iterator[Row]:
    """The total that each tells, the number of GPUs, and nvidia-smi's words."""
    variables = site.held(limit_mib)
    try:
        told = site.ask(variables, "views")
    except Outside as failed:
        yield untested("views", "CUDA and NVML", str(failed))
        return
    for name in ("cuMemGetInfo", "cuDeviceTotalMem", "NVML"):
        yield judged("views", f"{name}, total", "MiB", limit_mib, told[name] / MIB, below=0, above=0)
    for name in ("devices", "NVML devices"):
        yield judged("views", name, "", 1, told[name], below=0, above=0)
    yield judged("views", "processes that NVML lists", "", 1, told["processes"], below=1, above=0)
    real = None if site.simulated else shutil.which("nvidia-smi")
    for name, command in (
        ("lamina-smi", [sys.executable, "-c", _SMI]),
        ("nvidia-smi", [real] if real else []),
    ):
        if not command:
            why = "the GPU is simulated" if site.simulated else "there is no nvidia-smi on the PATH"
            yield untested("views", f"{name}, total", why)
            continue
        done = subprocess.run([*command, *_QUERY], env=variables, capture_output=True, text=True, check=False)
        lines = done.stdout.split()
        if done.returncode != 0 or len(lines) != 1 or not lines[0].isdigit():
            words = (done.stdout + done.stderr).strip()[-100:]
            yield Row(check="views", what=f"{name}, total", verdict="FAILED", note=f"it says {words!r}")
        else:
            yield judged("views", f"{name}, total", "MiB", limit_mib, int(lines[0]), below=0, above=0)
