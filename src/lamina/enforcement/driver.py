"""The real driver of this machine: where its libraries are, and which GPUs it has. Or a simulated one.

Lamina contains no simulated driver. A distribution such as lamina-lab offers one by an entry point of the group
`lamina.simulators`: a function that takes the model of a card and an empty folder, and returns a `SimulatedMachine`.
"""

import ctypes
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from msgspec import Struct

from lamina.core.gpu_facts import WORK_LATELY_S
from lamina.errors import BadInput, Outside

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
_DIRECTORIES = (
    "/usr/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/{machine}-linux-gnu/nvidia/current",
    "/run/opengl-driver/lib",
    "/usr/lib/wsl/lib",
)
_FACADE_MARK = b"LAMINA_DRIVER"
_NOT_SUPPORTED, _NOTHING_FOUND, _TOO_SMALL = 3, 6, 7  # of nvmlReturn_t


class LocalGpu(Struct, frozen=True):
    """A GPU as NVML tells it. What it does not tell is None."""

    index: int
    uuid: str
    name: str
    memory_mib: int
    used_mib: int | None = None
    busy_percent: int | None = None


def find_driver() -> Path:
    """The directory that holds the driver's libraries. Raises Outside when this machine has none."""
    for directory in _candidates():
        if all((directory / library).exists() for library in LIBRARIES) and not _is_facade(directory):
            return directory
    raise Outside("this machine has no NVIDIA driver (libcuda.so.1 and libnvidia-ml.so.1)")


def _candidates() -> Iterator[Path]:
    given = os.environ.get("LAMINA_DRIVER") or ""
    for text in [given, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]:
        if text.startswith("/"):
            yield Path(text)
    yield from _cached()
    for pattern in _DIRECTORIES:
        yield Path(pattern.format(machine=platform.machine()))


def _cached() -> Iterator[Path]:
    """Directories of the loader's cache that have a libcuda.so.1 for this machine."""
    here = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(platform.machine(), platform.machine())
    for program in ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            listed = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
        except OSError:
            continue
        for line in listed.splitlines():
            if line.strip().startswith("libcuda.so.1 ") and here in line:
                yield Path(line.rpartition("=> ")[2]).parent
        return


def _is_facade(directory: Path) -> bool:
    """A facade over a facade would look for the driver in itself."""
    return _FACADE_MARK in (directory / "libcuda.so.1").read_bytes()


class NvmlLibrary:
    """The NVML calls that are needed here, of the library at one path: nvidia-ml-py loads it by name only."""

    def __init__(self, driver: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(driver / "libnvidia-ml.so.1"))
        except OSError as error:
            raise Outside(f"the driver in {driver} cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")

    def _call(self, name: str, *arguments: object) -> None:
        self._check(name, getattr(self._library, name)(*arguments))

    def _check(self, name: str, code: int) -> None:
        if code != 0:
            text = self._library.nvmlErrorString
            text.restype = ctypes.c_char_p
            raise Outside(f"NVML's {name} failed: {text(code).decode()}")

    def count(self) -> int:
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def gpu(self, index: int) -> LocalGpu:
        handle = ctypes.c_void_p()
        uuid, name = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
        rates = (ctypes.c_uint * 2)()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        self._call("nvmlDeviceGetUUID", handle, uuid, ctypes.c_uint(len(uuid)))
        self._call("nvmlDeviceGetName", handle, name, ctypes.c_uint(len(name)))
        total, used = self._memory_mib(handle)
        known = self._library.nvmlDeviceGetUtilizationRates(handle, rates) == 0  # not of a GPU in MIG mode
        busy = rates[0] if known else None
        return LocalGpu(index, uuid.value.decode(), name.value.decode(), total, used, busy)

    def _memory_mib(self, handle: ctypes.c_void_p) -> tuple[int, int | None]:
        """What it has, and what is used of it. NVML does not say for GPUs that use the host's memory: 0 and None."""
        memory = (ctypes.c_ulonglong * 3)()
        code = self._library.nvmlDeviceGetMemoryInfo(handle, memory)
        if code == _NOT_SUPPORTED:
            return 0, None
        self._check("nvmlDeviceGetMemoryInfo", code)
        return memory[0] >> 20, memory[2] >> 20

    def work(self, uuid: str, now: float) -> Mapping[int, float] | None:
        """For which part of a GPU's time each process worked lately, by PID; None where the driver does not measure it.

        `now` is in s since the epoch. Drivers are known to return samples with figures over 100 %, which say nothing.
        """
        handle, count = ctypes.c_void_p(), ctypes.c_uint()
        self._call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        since, ask = ctypes.c_ulonglong(int((now - WORK_LATELY_S) * 1e6)), self._library.nvmlDeviceGetProcessUtilization
        code = ask(handle, None, ctypes.byref(count), since)
        samples = (_WorkSample * max(1, count.value))()
        if code == _TOO_SMALL:
            code = ask(handle, samples, ctypes.byref(count), since)
        if code not in (0, _NOTHING_FOUND):
            return None
        latest = sorted(samples[: count.value], key=lambda sample: sample.at) if code == 0 else []
        return {sample.pid: sample.percent / 100 for sample in latest if sample.percent <= 100}

    def close(self) -> None:
        self._library.nvmlShutdown()


class _WorkSample(ctypes.Structure):
    """nvmlProcessUtilizationSample_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("at", ctypes.c_ulonglong),
        ("percent", ctypes.c_uint),
        ("others", ctypes.c_uint * 3),
    )


def choose(found: Sequence[LocalGpu], wanted: str) -> LocalGpu:
    """The GPU of an index, or of a UUID or its unambiguous beginning, in any case of letters. Raises BadInput."""
    if wanted.isascii() and wanted.isdigit():
        matches = [gpu for gpu in found if gpu.index == int(wanted)]
    else:
        start = wanted.casefold()
        matches = [gpu for gpu in found if len(wanted) > len("GPU-") and gpu.uuid.casefold().startswith(start)]
    if len(matches) == 1:
        return matches[0]
    known = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in matches or found) or "none"
    if matches:
        raise BadInput(f"--gpu {wanted!r} is the beginning of several UUIDs; name one of: {known}")
    raise BadInput(f"--gpu {wanted!r} is not a GPU of this machine; there are: {known}")


GROUP = "lamina.simulators"


class SimulatedMachine(NamedTuple):
    """A machine with simulated GPUs."""

    driver: Path
    """The directory of its libcuda.so.1 and libnvidia-ml.so.1."""
    gpus: tuple[LocalGpu, ...]
    environment: dict[str, str]
    """Variables by which the driver finds the machine."""


class Simulator(Protocol):
    """Makes a simulated machine of `MODEL`, of `MODEL@VERSION` with a version of CUDA, or of several GPUs as in
    `2xMODEL`. Raises BadInput for unknown ones.

    Its files are in `folder`. Where one of the `others`, folders of such machines, has the same machine, both are one.
    """

    def __call__(self, model: str, folder: Path, others: Callable[[], Iterable[Path]] = tuple) -> SimulatedMachine: ...


def find_simulator() -> Simulator:
    """The installed simulator. Raises BadInput when there is none."""
    for entry_point in entry_points(group=GROUP):
        return cast(Simulator, entry_point.load())
    raise BadInput("--simulate needs a simulated driver; `pip install 'lamina[lab]'` installs one")
