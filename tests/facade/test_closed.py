"""Whatever is missing or wrong, the answer is that there is no device, never that there is no limit."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.facade.conftest import Container, MakeContainer

LOOK = """
import ctypes
cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
count, found = ctypes.c_int(-1), ctypes.c_void_p()
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
print(cuda.cuMemAlloc_v2(ctypes.byref(found), ctypes.c_size_t(1)), cuda.cuLaunchKernel())
print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
nvml.nvmlErrorString.restype = ctypes.c_char_p
print(nvml.nvmlErrorString(9).decode())
print(cuda.cuGetProcAddress_v2(b"cuInit", ctypes.byref(found), 11070, ctypes.c_uint64(0), None))
print(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(found.value)(0))
text = ctypes.c_char_p(b"never written")
print(cuda.cuGetErrorName(100, ctypes.byref(text)), text.value.decode())
print(cuda.cuGetErrorString(100, ctypes.byref(text)), text.value.decode())
print(cuda.cuGetErrorString(4711, ctypes.byref(text)), text.value, cuda.cuGetErrorName(100, None))
"""
NOTHING = ["100 3 -1", "3 3", "9 1 -1", "Driver Not Loaded", "0", "100"]
NOTHING += ["0 CUDA_ERROR_NO_DEVICE", "0 no CUDA-capable device is detected", "1 None 1"]


def truncate(path: Path, size: int) -> None:
    content = path.read_bytes()
    path.chmod(0o666)
    path.write_bytes(content[:size])


def change(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.chmod(0o666)
    path.write_bytes(content)


WRONG: dict[str, Callable[[Path], None]] = {
    "no limits": lambda folder: (folder / "limits").unlink(),
    "empty limits": lambda folder: truncate(folder / "limits", 0),
    "truncated limits": lambda folder: truncate(folder / "limits", 2111),
    "changed limits": lambda folder: change(folder / "limits", 64 + 48),
    "limits of another version": lambda folder: change(folder / "limits", 8),
    "no usage": lambda folder: (folder / "usage").unlink(),
    "empty usage": lambda folder: truncate(folder / "usage", 0),
    "truncated usage": lambda folder: truncate(folder / "usage", 100_000),
    "usage of another device": lambda folder: change(folder / "usage", 64 + 10),
    "usage that is a folder": lambda folder: ((folder / "usage").unlink(), (folder / "usage").mkdir())[0],
    "no folder": lambda folder: shutil.rmtree(folder / ".", ignore_errors=True),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_without_sound_files_there_is_no_device(wrong: str, container: MakeContainer) -> None:
    box = container()
    WRONG[wrong](box.folder)
    refused(box, "usage" if "usage" in wrong else "limits")


def refused(box: Container, about: str) -> None:
    done = box.run(sys.executable, "-c", LOOK)
    assert done.stdout.splitlines() == NOTHING, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and all(line.startswith("[lamina] no device: ") and about in line for line in lines)


@pytest.mark.parametrize("variable", ["LAMINA_DIR", "LAMINA_DRIVER"])
def test_without_the_variables_there_is_no_device(variable: str, container: MakeContainer) -> None:
    box = container()
    script = f"import os, sys; del os.environ['{variable}']; os.execv(sys.executable, [sys.executable, '-c', {LOOK!r}])"
    done = box.run(sys.executable, "-c", script)
    assert done.stdout.splitlines() == NOTHING and done.stderr.count(variable) == 2


def test_without_a_driver_there_is_no_device(container: MakeContainer, tmp_path: Path) -> None:
    box = container()
    change = f"import os, sys; os.environ['LAMINA_DRIVER'] = {str(tmp_path)!r}; "
    done = box.run(sys.executable, "-c", change + f"os.execv(sys.executable, [sys.executable, '-c', {LOOK!r}])")
    assert done.stdout.splitlines() == NOTHING and done.stderr.count("cannot open shared object file") == 2


def test_the_linkers_name_leads_to_the_facade_too(container: MakeContainer, tmp_path: Path) -> None:
    box = container(2000)
    (tmp_path / "system").mkdir()
    (tmp_path / "system/libcuda.so").symlink_to(simgpu.library("libcuda.so.1"))
    script = """
import ctypes
cuda, bytes = ctypes.CDLL("libcuda.so"), ctypes.c_size_t()
print(cuda.cuInit(0), cuda.cuDeviceTotalMem_v2(ctypes.byref(bytes), 0), bytes.value >> 20)
"""
    done = box.run(sys.executable, "-c", script, LD_LIBRARY_PATH=str(tmp_path / "system"))
    assert done.stdout == "0 0 2000\n", done.stderr


def test_a_program_without_cuda_touches_neither_files_nor_driver(container: MakeContainer) -> None:
    box = container()
    shutil.rmtree(box.folder)
    done = box.run("cat", "/proc/self/maps")
    assert done.returncode == 0 and done.stderr == ""
    assert "facade/libcuda.so.1" in done.stdout
    assert "native/simgpu/" not in done.stdout and "usage" not in done.stdout
