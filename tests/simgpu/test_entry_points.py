"""The driver's entry points by name and version."""

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest

from lamina_lab import simgpu
from tests.simgpu.machines import Machine, Process

DEFINITIONS = Path(__file__).parents[2] / "lab" / "native" / "simgpu" / "cuda" / "entry_points.def"
FOUND, MISSING, TOO_OLD = 0, 1, 2

ASK = (
    "(lambda p, s: (cu.cuGetProcAddress_v2({name!r}, byref(p), {version}, c_uint64({flags}), byref(s)), "
    "p.value, s.value))(c_void_p(), c_int())"
)
OWN = "ctypes.cast(cu.{symbol}, c_void_p).value"


def ask(process: Process, name: str, version: int, flags: int = 0) -> Any:
    return process(ASK.format(name=name.encode(), version=version, flags=flags))


@pytest.mark.parametrize(
    ("name", "version", "flags", "symbol"),
    [
        ("cuMemAlloc", 11070, 0, "cuMemAlloc_v2"),
        ("cuCtxCreate", 11030, 0, "cuCtxCreate_v2"),
        ("cuCtxCreate", 11070, 0, "cuCtxCreate_v3"),
        ("cuLaunchKernel", 11070, 0, "cuLaunchKernel"),
        ("cuLaunchKernel", 11070, 1, "cuLaunchKernel"),
        ("cuLaunchKernel", 11070, 2, "cuLaunchKernel_ptsz"),
        ("cuMemcpyHtoD", 11070, 2, "cuMemcpyHtoD_v2_ptds"),
        ("cuMemAlloc", 11070, 2, "cuMemAlloc_v2"),
        ("cuStreamBeginCapture", 11070, 0, "cuStreamBeginCapture_v2"),
        ("cuGetProcAddress", 11070, 0, "cuGetProcAddress"),
        ("cuDeviceGetUuid", 11030, 0, "cuDeviceGetUuid"),
        ("cuDeviceGetUuid", 11040, 0, "cuDeviceGetUuid_v2"),
        ("cuDevicePrimaryCtxReset", 7000, 0, "cuDevicePrimaryCtxReset"),
        ("cuDevicePrimaryCtxRelease", 7000, 0, "cuDevicePrimaryCtxRelease"),
        ("cuDevicePrimaryCtxSetFlags", 7000, 0, "cuDevicePrimaryCtxSetFlags"),
    ],
)
def test_a_name_finds_its_symbol(machine: Machine, name: str, version: int, flags: int, symbol: str) -> None:
    process = machine.started()
    code, address, status = ask(process, name, version, flags)
    assert (code, status) == (0, FOUND)
    assert address == process(OWN.format(symbol=symbol))


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [("cuNothing", 11070, MISSING), ("cuLaunchKernelEx", 11000, TOO_OLD), ("cuGraphAddNode", 11070, MISSING)],
)
def test_a_name_that_is_not_there(machine: Machine, name: str, version: int, status: int) -> None:
    """The last of the three came with CUDA 12.2; the machine's driver is 11.7."""
    process = machine.started()
    assert ask(process, name, version) == (0, None, status)
    first = f"cu.cuGetProcAddress({name.encode()!r}, byref(c_void_p()), {version}, c_uint64(0))"
    assert process(first) == 500, "the first form has no status"


def test_a_version_beyond_the_driver_s_own_is_refused(machine: Machine) -> None:
    process = machine.started()
    assert ask(process, "cuMemAlloc", 11080) == (1, None, 0)
    assert process("cu.cuGetProcAddress(b'cuMemAlloc', byref(c_void_p()), 11080, c_uint64(0))") == 1


def test_variants_for_per_thread_streams_came_with_version_7(machine: Machine) -> None:
    process = machine.started()
    assert ask(process, "cuLaunchKernel", 6050, 2) == (0, None, TOO_OLD)
    assert ask(process, "cuLaunchKernel", 7000, 2)[::2] == (0, FOUND)
    assert ask(process, "cuMemAlloc", 6050, 2)[::2] == (0, FOUND), "it has no such variant"


def test_every_entry_point_is_exported_once() -> None:
    library = ctypes.CDLL(str(simgpu.library("libcuda.so.1")))
    names = []
    for kind, arguments in re.findall(r"^(\w+)\((.*)\)$", DEFINITIONS.read_text(), re.MULTILINE):
        parts = [part.strip() for part in arguments.split(",")]
        match kind:
            case "ENTRY":
                names.append(parts[2])
            case "ENTRY_PER_THREAD":
                names += [parts[2], parts[2] + parts[3]]
            case "OLDER":
                names.append(parts[0])
    assert len(names) > 300
    addresses = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names}
    assert len(set(addresses.values())) == len(set(names))


def test_private_interfaces_are_not_there(machine: Machine) -> None:
    assert machine.started()("cu.cuGetExportTable(byref(c_void_p()), b'0' * 16)") == 500


@pytest.mark.parametrize(("code", "name"), [(0, b"CUDA_SUCCESS"), (2, b"CUDA_ERROR_OUT_OF_MEMORY"), (12345, None)])
def test_error_names(machine: Machine, code: int, name: bytes | None) -> None:
    asked = f"(lambda t: (cu.cuGetErrorName({code}, byref(t)), t.value))(ctypes.c_char_p())"
    assert machine.process()(asked) == (0 if name else 1, name)
