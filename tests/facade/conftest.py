"""A container on a simulated machine, without a container: files, environment, programs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lamina import native
from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, Usage, environment, read_usage, write_container
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.building import compile_program

MIB = 1 << 20
CONTEXT = 303 * MIB

PRELUDE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
def begin():
    context = ctypes.c_void_p()
    codes = cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
    return codes
def take(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
def free():
    left = ctypes.c_size_t()
    return cuda.cuMemGetInfo_v2(ctypes.byref(left), None), left.value >> 20
"""


@dataclass
class Container:
    """One set of limits over one simulated machine."""

    folder: Path
    machine: simgpu.Machine
    limits: Limits

    @property
    def uuids(self) -> list[str]:
        return [gpu.uuid for gpu in place(self.machine)]

    def environment(self, **more: str) -> dict[str, str]:
        outer = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        base = {**outer, "SIMGPU_MACHINE": str(self.folder / "machine"), **more}
        return environment(self.folder, simgpu.driver_folder(), base)

    def run(
        self, *command: str | Path, timeout: float = 120, stdin: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program in the container; its output is one text."""
        variables = self.environment(**more)
        return subprocess.run(
            command, env=variables, text=True, capture_output=True, timeout=timeout, check=False, input=stdin
        )

    def start(self, *command: str | Path) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment(), text=True, stdin=pipe, stdout=pipe, stderr=pipe)

    @contextmanager
    def waiting(self, script: str, *, outside: bool = False, **more: str) -> Iterator["subprocess.Popen[str]"]:
        """A Python program that said "there" and waits for a line; `outside` of the container, on the same machine."""
        driver = simgpu.driver_folder()
        variables = self.environment(**more)
        if outside:
            variables |= {"LD_PRELOAD": "", "LD_LIBRARY_PATH": str(driver)}
        command = [sys.executable, "-c", f"{PRELUDE}{script}\nprint('there', flush=True)\ninput()"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=variables, text=True, stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "there\n"
                yield process
            finally:
                process.kill()

    def usage(self) -> Usage:
        return read_usage(self.folder / "usage")

    def really_held(self) -> int:
        """Bytes in use on the first GPU, as the simulated machine has it."""
        return simgpu.read(self.folder / "machine").gpus[0].used_mib * MIB


MakeContainer = Callable[..., Container]


def make_container(
    folder: Path,
    mib: int = 3000,
    *,
    gpus: int = 1,
    granted: tuple[int, ...] = (0,),
    cores: int = 0,
    physical: int = 0,
    request: int = 0,
) -> Container:
    """A container in the folder with so many MiB (and, if not 0, cores) on these GPUs of a machine of V100s."""
    machine = simgpu.Machine(gpus=(simgpu.GpuSpec(model="V100-SXM2-32GB", count=gpus),), seed=str(folder))
    simgpu.write(machine, folder / "machine")
    uuids = [gpu.uuid for gpu in place(machine)]
    policy = ComputePolicy.CAP if cores else ComputePolicy.NONE
    share = {
        "memory_bytes": mib * MIB,
        "physical_bytes": physical * MIB,
        "request_bytes": request * MIB,
        "cores_percent": cores,
        "compute_policy": policy,
    }
    limits = Limits(devices=tuple(DeviceLimit(uuid=uuids[i], **share) for i in granted))
    write_container(folder, limits)
    return Container(folder, machine, limits)


@pytest.fixture
def container(tmp_path: Path) -> MakeContainer:
    """Makes a container in the test's folder."""
    return partial(make_container, tmp_path)


class Programs(dict[str, Path]):
    """Compiled when first asked for, as each process of a run side by side needs but some of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        linked, library = "native/tests/facade_linked.c", str(native.path("facade/libcuda.so.1"))
        if name == "plugin":
            self[name] = compile_program(self.folder, "plugin.so", [linked, library], "-shared", "-fPIC")
        else:
            sources = [f"native/tests/facade_{name}.c", "native/tests/facade_calls.c", linked, library]
            self[name] = compile_program(self.folder, name, sources)
        return self[name]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The test programs, linked to libcuda.so.1 as any CUDA program is, and a plug-in for RTLD_DEEPBIND."""
    return Programs(tmp_path_factory.mktemp("programs"))
