"""What a driver says of its GPUs, asked in a process of its own.

A driver reads its variables when a process first calls it, and stays in that process until it ends. So what it says
under other variables, or of another machine, is asked elsewhere: `python -m lamina.enforcement.driver_query WHAT
FOLDER`, with the driver's directory, which prints JSON. An error is printed as a text.
"""

import ctypes
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from lamina.enforcement.driver import LocalGpu, NvmlLibrary
from lamina.errors import LaminaError, Outside

_MODULE = "lamina.enforcement.driver_query"
_NO_DEVICE = 100
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_TIMEOUT_S = 60
_T = TypeVar("_T")


def ask_gpus(driver: Path, variables: Mapping[str, str]) -> tuple[LocalGpu, ...]:
    """The GPUs that NVML knows, with what they do now. Raises Outside."""
    return _ask("gpus", driver, variables, tuple[LocalGpu, ...])


def ask_visible(driver: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The UUIDs of the GPUs that a CUDA program sees, in CUDA's order. Raises Outside."""
    return _ask("visible", driver, variables, tuple[str, ...])


def gpus(driver: Path) -> tuple[LocalGpu, ...]:
    """The GPUs that the NVML library in a directory knows. Raises Outside when it does not answer.

    CUDA says how much memory a GPU has of which NVML does not know it, because it uses the host's.
    """
    nvml = NvmlLibrary(driver)
    try:
        found = tuple(nvml.gpu(index) for index in range(nvml.count()))
    finally:
        nvml.close()
    if all(gpu.memory_mib for gpu in found):
        return found
    variables = {name: value for name, value in os.environ.items() if name != _VISIBLE}
    totals = _ask("totals", driver, variables, dict[str, int])
    return tuple(replace(gpu, memory_mib=gpu.memory_mib or totals.get(gpu.uuid, 0)) for gpu in found)


def visible(driver: Path) -> tuple[str, ...]:
    """The UUIDs that a CUDA program sees, of this process."""
    return tuple(str(uuid.UUID(bytes=ident)) for ident, _ in _devices(driver))


def totals(driver: Path) -> dict[str, int]:
    """How much memory each GPU has that a CUDA program sees, in MiB."""
    return {f"GPU-{uuid.UUID(bytes=ident)}": total >> 20 for ident, total in _devices(driver)}


def _devices(driver: Path) -> Iterator[tuple[bytes, int]]:
    """UUID and bytes of memory of each GPU, in CUDA's order."""
    try:
        library = ctypes.CDLL(str(driver / "libcuda.so.1"))
    except OSError as error:
        raise Outside(f"the driver in {driver} cannot be loaded: {error}") from error

    def call(name: str, *arguments: object) -> bool:
        code: int = getattr(library, name)(*arguments)
        if code not in (0, _NO_DEVICE):
            raise Outside(f"the driver's {name} failed with error {code}")
        return code == 0

    count, device, ident, total = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_size_t()
    if call("cuInit", 0) and call("cuDeviceGetCount", ctypes.byref(count)):
        for number in range(count.value):
            call("cuDeviceGet", ctypes.byref(device), number)
            call("cuDeviceGetUuid_v2", ident, device)  # of a MIG device, its own
            call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
            yield bytes(ident), total.value


def _ask(what: str, driver: Path, variables: Mapping[str, str], answer: type[_T]) -> _T:
    command = [sys.executable, "-P", "-m", _MODULE, what, str(driver)]
    try:
        done = subprocess.run(command, env=variables, capture_output=True, timeout=_TIMEOUT_S, check=False)
        return msgspec.json.decode(done.stdout, type=answer)
    except subprocess.TimeoutExpired as late:
        raise Outside(f"the driver in {driver} does not answer within {_TIMEOUT_S} s") from late
    except msgspec.ValidationError as error:
        raise Outside(msgspec.json.decode(done.stdout)) from error
    except msgspec.DecodeError as error:
        raise Outside(f"the driver in {driver} cannot be asked: exit code {done.returncode}") from error


_WHAT: Mapping[str, Callable[[Path], object]] = {"gpus": gpus, "visible": visible, "totals": totals}

if __name__ == "__main__":
    try:
        said = _WHAT[sys.argv[1]](Path(sys.argv[2]))
    except LaminaError as error:
        said = str(error)
    sys.stdout.write(msgspec.json.encode(said).decode())
