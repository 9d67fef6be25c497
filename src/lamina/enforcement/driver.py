"""The real driver of this machine: where its libraries are, and which GPUs it has."""

import ctypes
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

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


class LocalGpu(Struct, frozen=True):
    """A GPU as NVML tells it."""

    index: int
    uuid: str
    name: str
    memory_mib: int


def find_driver() -> Path:
    """The directory that holds the driver's libraries. Raises Outside when this machine has none."""
    for directory in _candidates():
        if all((directory / library).exists() for library in LIBRARIES) and not _is_facade(directory):
            return directory
    raise Outside("this machine has no NVIDIA driver (libcuda.so.1 and libnvidia-ml.so.1); use --simulate MODEL")


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


def gpus(driver: Path) -> tuple[LocalGpu, ...]:
    """The GPUs that the NVML library in a directory knows. Raises Outside when it does not answer."""
    nvml = _Nvml(driver)
    try:
        return tuple(nvml.gpu(index) for index in range(nvml.count()))
    finally:
        nvml.close()


class _Nvml:
    """The five NVML calls that are needed here, of the library at one path: nvidia-ml-py loads it by name only."""

    def __init__(self, driver: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(driver / "libnvidia-ml.so.1"))
        except OSError as error:
            raise Outside(f"the driver in {driver} cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
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
        memory = (ctypes.c_ulonglong * 3)()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        self._call("nvmlDeviceGetUUID", handle, uuid, ctypes.c_uint(len(uuid)))
        self._call("nvmlDeviceGetName", handle, name, ctypes.c_uint(len(name)))
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        return LocalGpu(index, uuid.value.decode(), name.value.decode(), memory[0] >> 20)

    def close(self) -> None:
        self._library.nvmlShutdown()


def choose(found: tuple[LocalGpu, ...], wanted: str) -> LocalGpu:
    """The GPU of an index, or of a UUID or its unambiguous beginning. Raises BadInput."""
    if wanted.isascii() and wanted.isdigit():
        matches = [gpu for gpu in found if gpu.index == int(wanted)]
    else:
        matches = [gpu for gpu in found if len(wanted) > len("GPU-") and gpu.uuid.startswith(wanted)]
    if len(matches) != 1:
        known = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in found) or "none"
        raise BadInput(f"--gpu {wanted!r} is not a GPU of this machine; there are: {known}")
    return matches[0]
