"""What a stage could leave on the machine: processes, mounts, control groups, interfaces, settings of the kernel."""

from pathlib import Path

from tests.cluster.stage import cgroups, guard
from tests.cluster.stage.commands import run

Survey = dict[str, list[str]]


def survey() -> Survey:
    """All that is there now and has the marks of a stage, or is the machine's own and must not change."""
    return {
        "processes": _processes(),
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "groups": sorted(str(path) for top in cgroups.hierarchies() for path in top.glob("lamina-stage-*")),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "namespaces": sorted(run(["lsns", "-n", "-o", "COMMAND", "-t", "net"]).split("\n")),
        "settings": [f"{name}={value}" for name, value in guard.settings().items()],
        "folders": sorted(str(path) for path in Path("/var/lib").iterdir()),
    }


def _processes() -> list[str]:
    """Commands that name a stage's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        found += [word.decode(errors="replace") for word in words if b"/lamina-stage-" in word]
    return sorted(found)
