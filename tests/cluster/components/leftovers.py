"""What a cluster could leave on the machine: processes, mounts, control groups, interfaces, settings of the kernel."""

from pathlib import Path

from tests.cluster.components import cgroups
from tests.cluster.components.sandboxes import SETTINGS

Survey = dict[str, list[str]]


def machine() -> Survey:
    """What is the machine's own and must not change."""
    settings = [Path("/proc/sys") / name for name in SETTINGS]
    return {
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "settings": [f"{path}: {path.read_text().strip()}" for path in settings if path.exists()],
        "folders": sorted(str(path) for path in Path("/var/lib").iterdir()),
    }


def of_cluster(folder: Path) -> list[str]:
    """What is still there of the cluster in this folder."""
    groups = [top / folder.name for top in cgroups.hierarchies()]
    return [str(path) for path in (folder, *groups) if path.exists()] + _processes(folder)


def _processes(folder: Path) -> list[str]:
    """Commands that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        except OSError:
            continue
        if f"{folder}/".encode() in command:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return sorted(found)
