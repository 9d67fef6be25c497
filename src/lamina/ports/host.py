"""What the kernel of the host says in /proc, /sys and /dev."""

from pathlib import Path
from typing import Protocol

PROC = Path("/proc")
MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")
"""Where the driver lists the device nodes of MIG instances."""


class Host(Protocol):
    """What cannot be read counts as absent: every call returns an empty answer and raises nothing."""

    def process_cgroups(self, pid: int) -> str:
        """The cgroup paths of a process, as in /proc/PID/cgroup."""
        ...

    def machine_type(self, path: str = "") -> str:
        """The product name of the machine; `path` is a file to read instead of the one in /sys."""
        ...

    def mig_minors(self) -> str:
        """The driver's list of MIG capabilities and the minor numbers of their device nodes."""
        ...

    def has_device(self, path: Path) -> bool:
        """Whether a device node exists."""
        ...


class LinuxHost:
    """The real files; `proc` is where the host's /proc is mounted."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc

    def process_cgroups(self, pid: int) -> str:
        return _read(self._proc / str(pid) / "cgroup")

    def machine_type(self, path: str = "") -> str:
        return _read(Path(path) if path else MACHINE_TYPE).strip()

    def mig_minors(self) -> str:
        return _read(MIG_MINORS)

    def has_device(self, path: Path) -> bool:
        return path.exists()


class FakeHost:
    """Answers from its attributes."""

    def __init__(self) -> None:
        self.cgroups: dict[int, str] = {}
        self.machine = ""
        self.minors = ""
        self.devices: set[Path] = set()

    def process_cgroups(self, pid: int) -> str:
        return self.cgroups.get(pid, "")

    def machine_type(self, path: str = "") -> str:
        return self.machine

    def mig_minors(self) -> str:
        return self.minors

    def has_device(self, path: Path) -> bool:
        return path in self.devices


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
