"""The runs of this machine: the folder of each, the record of what it is, and what its processes hold.

A run keeps its record locked while it lives, so a record that can be locked belongs to a run that has ended without
cleaning up. Records and usage are written by the run's user: believe nothing in them, and load nothing that they name
unless that user is one's own.
"""

import fcntl
import os
import pwd
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.core.quantities import MIB
from lamina.enforcement import run_reaper
from lamina.enforcement.container_files import open_file, read_file, reason
from lamina.enforcement.driver import LocalGpu
from lamina.enforcement.files import LIMITS, USAGE
from lamina.enforcement.layout import NS_BITS
from lamina.enforcement.limits import DeviceLimit, read_limits
from lamina.enforcement.usage import DeviceUsage, ProcessUsage, Usage, read_usage
from lamina.errors import BadInput, LaminaError

RECORD = "run"
_ANY = "lamina-run-"
_PREFIX = f"{_ANY}{os.geteuid()}-"
_MAX_BYTES = 1 << 16
_MAX_COMMAND = 4096


class RunRecord(Struct, frozen=True, kw_only=True):
    """What a run is. `device` is the CDI device that its containers have, empty where the command itself is limited.

    `simulated` are the variables by which the driver in `driver` finds its simulated machine; none on a real one.
    """

    pid: int
    command: str
    started: float
    """In s since the epoch."""
    gpu: LocalGpu
    driver: str
    device: str = ""
    simulated: dict[str, str] = {}


class Run(Struct, frozen=True, kw_only=True):
    """A run at one moment. `refusal` says why its files cannot be read; nothing else is known of it then."""

    folder: Path
    user: str
    own: bool
    """Whether it is of the user who asks."""
    refusal: str = ""
    record: RunRecord | None = None
    limit: DeviceLimit | None = None
    use: DeviceUsage | None = None
    processes: tuple[ProcessUsage, ...] = ()
    """Those that live and use the GPU."""
    alive: bool = True
    left: tuple[int, ...] = ()
    """The PIDs of its processes that go on, where it has ended."""

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix(_ANY).partition("-")[2]

    @property
    def used_bytes(self) -> int:
        """What its living processes hold of the GPU."""
        if self.use is None or self.limit is None:
            return 0
        return sum(process.total(self.use.uuid) for process in self.processes) + self.use.orphaned


def make_folder() -> Path:
    """A private directory for a new run."""
    return Path(tempfile.mkdtemp(prefix=_PREFIX))


def own_folders() -> list[Path]:
    """The folders of all runs of this user, which know of each other by them."""
    return [folder for folder, uid in _folders(_PREFIX) if uid == os.geteuid()]


@contextmanager
def recorded(folder: Path, record: RunRecord) -> Iterator[None]:
    """Keep the record in the folder, locked for the time of the block."""
    short = msgspec.structs.replace(record, command=record.command[:_MAX_COMMAND])
    temporary = folder / f".{RECORD}"
    with temporary.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(msgspec.json.encode(short))
        file.flush()
        temporary.rename(folder / RECORD)
        yield


def runs() -> list[Run]:
    """The runs of all users of this machine, the oldest first. One that begins or ends meanwhile may be left out."""
    found = [run for folder, uid in _folders(_ANY) if (run := _run(folder, uid)) is not None]
    return sorted(found, key=lambda run: (run.record.started if run.record else 0.0, run.name))


def _folders(prefix: str) -> Iterator[tuple[Path, int]]:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            yield folder, folder.lstat().st_uid


def _run(folder: Path, uid: int) -> Run | None:
    user, own = _name_of(uid), uid == os.geteuid()
    try:
        alive = _is_locked(folder / RECORD)
        record = msgspec.json.decode(read_file(folder / RECORD, _MAX_BYTES), type=RunRecord)
        limit, usage = read_limits(folder / LIMITS).devices[0], read_usage(folder / USAGE)
        use = next((device for device in usage.devices if device.uuid == limit.uuid), None)
        if use is None or record.gpu.uuid != limit.uuid:
            raise BadInput("its files are of different GPUs")
    except FileNotFoundError:
        return None  # it begins or ends
    except OSError as error:
        return Run(folder=folder, user=user, own=own, refusal=reason(error))
    except (msgspec.DecodeError, LaminaError) as error:
        if not folder.exists():
            return None
        return Run(folder=folder, user=user, own=own, refusal=str(error))
    return Run(
        folder=folder,
        user=user,
        own=own,
        record=record,
        limit=limit,
        use=use,
        processes=_living(usage),
        alive=alive,
        left=() if alive else tuple(run_reaper.carrying(str(folder))),
    )


def _living(usage: Usage) -> tuple[ProcessUsage, ...]:
    """The processes without those of this PID namespace that have ended: what they held is not cleared at once."""
    here = Path("/proc/self/ns/pid").stat().st_ino & ((1 << NS_BITS) - 1)
    return tuple(each for each in usage.processes if each.namespace != here or Path(f"/proc/{each.pid}").exists())


def _is_locked(path: Path) -> bool:
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def exceeded(gpu: LocalGpu, runs: Iterable[Run]) -> str:
    """A sentence where the limits of the runs on a GPU are more than it has, with the amounts; else nothing."""
    limits = {
        run.name: run.limit.memory_bytes // MIB
        for run in runs
        if run.limit is not None and run.limit.uuid == gpu.uuid and (run.alive or run.left)
    }
    total = sum(limits.values())
    if total <= gpu.memory_mib:
        return ""
    each = ", ".join(f"{mib} of run {name}" for name, mib in limits.items())
    return (
        f"the limits of {len(limits)} runs on GPU {gpu.index} ({gpu.name}) are {total} MiB together, and it has "
        f"{gpu.memory_mib} MiB: {each}; within its limit a run may be refused memory that others hold"
    )
