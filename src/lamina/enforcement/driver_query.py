"""What a driver says of its GPUs, asked in a process of its own.

A driver reads its variables when a process first calls it, and stays in that process until it ends. So what it says
under other variables, or of another machine, is asked elsewhere: `python -m lamina.enforcement.driver_query WHAT
FOLDER`, with the driver's directory, which prints JSON. An error is printed as a text.
"""

import ctypes
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from lamina.enforcement.driver import LocalGpu, gpus
from lamina.errors import LaminaError, Outside

_NO_DEVICE = 100
_TIMEOUT_S = 60
_T = TypeVar("_T")


def ask_gpus(driver: Path, variables: Mapping[str, str]) -> tuple[LocalGpu, ...]:
    """The GPUs that NVML knows, with what they do now. Raises Outside."""
    return _ask("gpus", driver, variables, tuple[LocalGpu, ...])


def ask_visible(driver: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The UUIDs of the GPUs that a CUDA program sees, in CUDA's order. Raises Outside."""
    return _ask("visible", driver, variables, tuple[str, ...])


def visible(driver: Path) -> tuple[str, ...]:
    """The same of this process."""
    try:
        library = ctypes.CDLL(str(driver / "libcuda.so.1"))
    except OSError as error:
        raise Outside(f"the driver in {driver} cannot be loaded: {error}") from error

    def call(name: str, *arguments: object) -> bool:
        code: int = getattr(library, name)(*arguments)
        if code not in (0, _NO_DEVICE):
            raise Outside(f"the driver's {name} failed with error {code}")
        return code == 0

    count, device, ident = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    found = []
    if call("cuInit", 0) and call("cuDeviceGetCount", ctypes.byref(count)):
        for number in range(count.value):
            call("cuDeviceGet", ctypes.byref(device), number)
            call("cuDeviceGetUuid_v2", ident, device)  # of a MIG device, its own
            found.append(str(uuid.UUID(bytes=bytes(ident))))
    return tuple(found)


def _ask(what: str, driver: Path, variables: Mapping[str, str], answer: type[_T]) -> _T:
    command = [sys.executable, "-P", "-m", __name__, what, str(driver)]
    try:
        done = subprocess.run(command, env=variables, capture_output=True, timeout=_TIMEOUT_S, check=False)
        return msgspec.json.decode(done.stdout, type=answer)
    except subprocess.TimeoutExpired as late:
        raise Outside(f"the driver in {driver} does not answer within {_TIMEOUT_S} s") from late
    except msgspec.ValidationError as error:
        raise Outside(msgspec.json.decode(done.stdout)) from error
    except msgspec.DecodeError as error:
        raise Outside(f"the driver in {driver} cannot be asked: exit code {done.returncode}") from error


_WHAT: Mapping[str, Callable[[Path], object]] = {"gpus": gpus, "visible": visible}

if __name__ == "__main__":
    try:
        said = _WHAT[sys.argv[1]](Path(sys.argv[2]))
    except LaminaError as error:
        said = str(error)
    sys.stdout.write(msgspec.json.encode(said).decode())
