"""What the kernel of the host says in /proc, /sys and /dev.

Processes choose some of the words in its text files. The kernel ends each line with a line feed and escapes that
character in names. It does not escape the other characters at which Python splits lines, so a process could otherwise
write lines of its own by its name or by the name of a file.
"""

from pathlib import Path
from typing import NamedTuple, Protocol

PROC = Path("/proc")
MACHINE_TYPE = Path("/sys/class/dmi/id/product_name")
MIG_MINORS = Path("/proc/driver/nvidia-caps/mig-minors")
"""Where the driver lists the device nodes of MIG instances."""
_START = 19
"""Which of the fields after the name in /proc/PID/stat has the start."""


class ProcessIdentity(NamedTuple):
    """A process as it knows itself: its PID in its own PID namespace, and when it started, in clock ticks since boot.

    The start distinguishes it from a later process with the same PID.
    """

    pid: int
    start: int


class Host(Protocol):
    """What cannot be read counts as absent: every call returns an empty answer and raises nothing."""

    def process_cgroups(self, pid: int) -> str:
        """The cgroup paths of a process, as in /proc/PID/cgroup."""
        ...

    def process_name(self, pid: int) -> str:
        """The first 15 characters of a process's name, as in /proc/PID/comm."""
        ...

    def process_identity(self, pid: int) -> ProcessIdentity | None:
        """Who a process is in its own PID namespace; None when there is no such process."""
        ...

    def has_mapped(self, pid: int, file: Path) -> bool:
        """Whether a process has a file in its memory."""
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

    def process_name(self, pid: int) -> str:
        return _read(self._proc / str(pid) / "comm").removesuffix("\n")

    def process_identity(self, pid: int) -> ProcessIdentity | None:
        return parse_identity(_read(self._proc / str(pid) / "status"), _read(self._proc / str(pid) / "stat"))

    def has_mapped(self, pid: int, file: Path) -> bool:
        try:
            number = str(file.stat().st_ino)
        except OSError:
            return False
        lines = (line.split(maxsplit=5) for line in kernel_lines(_read(self._proc / str(pid) / "maps")))
        return any(fields[4] == number and fields[5:] == [str(file)] for fields in lines)

    def machine_type(self, path: str = "") -> str:
        return _read(Path(path) if path else MACHINE_TYPE).strip()

    def mig_minors(self) -> str:
        return _read(MIG_MINORS)

    def has_device(self, path: Path) -> bool:
        return path.exists()


def parse_identity(status: str, stat: str) -> ProcessIdentity | None:
    """The identity of a process from its /proc/PID/status and stat; None where one of them does not tell it."""
    pids = next((line for line in kernel_lines(status) if line.startswith("NSpid:")), "").split()
    fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    if len(pids) < 2 or len(fields) <= _START:
        return None
    try:
        return ProcessIdentity(int(pids[-1]), int(fields[_START]))
    except ValueError:
        return None


class FakeHost:
    """Answers from its attributes."""

    def __init__(self) -> None:
        self.cgroups: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.identities: dict[int, ProcessIdentity] = {}
        self.mapped: set[tuple[int, Path]] = set()
        self.machine = ""
        self.minors = ""
        self.devices: set[Path] = set()

    def process_cgroups(self, pid: int) -> str:
        return self.cgroups.get(pid, "")

    def process_name(self, pid: int) -> str:
        return self.names.get(pid, "")

    def process_identity(self, pid: int) -> ProcessIdentity | None:
        return self.identities.get(pid)

    def has_mapped(self, pid: int, file: Path) -> bool:
        return (pid, file) in self.mapped

    def machine_type(self, path: str = "") -> str:
        return self.machine

    def mig_minors(self) -> str:
        return self.minors

    def has_device(self, path: Path) -> bool:
        return path in self.devices


def _read(path: Path) -> str:
    try:
        return kernel_text(path)
    except OSError:
        return ""


def kernel_text(path: Path) -> str:
    """The content of the file; bytes that are no UTF-8 are kept as surrogates. Raises OSError."""
    return path.read_bytes().decode(errors="surrogateescape")


def kernel_lines(text: str) -> list[str]:
    """The lines that the kernel wrote."""
    return text.removesuffix("\n").split("\n") if text else []
