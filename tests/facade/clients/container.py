"""A container for unmodified CUDA programs, on a machine whose driver counts the calls that go past the facade."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.facade.clients.counting_driver import CountingDriver
from tests.facade.conftest import MIB, Container

PROGRAMS = Path(__file__).with_name("programs")
LIMIT_MIB = 3000
KERNEL_MS = 2
SAVED_LAUNCHES = 100
"""Launches that use up the time which a container has saved before its first one."""
LAUNCHES = 200
MAX_RUN_S = 300


def needs(*distributions: str) -> None:
    """Skips the test where one of these distributions of PyPI is not installed."""
    for name in distributions:
        try:
            version(name)
        except PackageNotFoundError:
            pytest.skip(f"needs {name}; install it with pip install '.[clients]'")


class ClientContainer(Container):
    """3000 MiB of an A100 with a driver of CUDA 13.0, and `cores` percent of its time if that is not 0."""

    def __init__(self, folder: Path, *, cores: int = 0, facade: Path | None = None) -> None:
        """`facade` is a libcuda.so.1 in place of the one for the driver."""
        gpus = (simgpu.GpuSpec(model="A100-SXM4-40GB"),)
        kernel_ns = KERNEL_MS * 1_000_000
        machine = simgpu.Machine(gpus=gpus, seed=str(folder), driver="580.95.05", cuda="13.0", kernel_ns=kernel_ns)
        simgpu.write(machine, folder / "machine")
        device = DeviceLimit(
            uuid=place(machine)[0].uuid,
            memory_bytes=LIMIT_MIB * MIB,
            cores_percent=cores,
            compute_policy=ComputePolicy.CAP if cores else ComputePolicy.NONE,
        )
        limits = Limits(devices=(device,))
        write_container(folder, limits)
        super().__init__(folder, machine, limits)
        (folder / "driver").mkdir()
        self.driver = CountingDriver(folder / "driver")
        self.facade = facade

    def environment(self, **more: str) -> dict[str, str]:
        variables = super().environment(**more, **self.driver.environment)
        cuda, nvml, *_ = variables["LD_PRELOAD"].split(":")
        cuda = str(self.facade or cuda)
        changes = {
            "LD_PRELOAD": f"{cuda}:{nvml}",
            "LAMINA_DRIVER": str(self.driver.folder),
            "TRITON_LIBCUDA_PATH": str(Path(cuda).parent),  # containers have it where ldconfig finds it
            "TRITON_CACHE_DIR": str(self.folder / "triton"),
            "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",
        }
        return variables | changes

    @contextmanager
    def filled(self, *command: str | Path) -> Iterator[tuple[int, int]]:
        """While a program holds all it could get: how often it got something, and how many MiB each time."""
        with self.start(*command) as process:
            assert process.stdout is not None
            try:
                line = process.stdout.readline()
                if not line.startswith("full "):
                    pytest.fail(line + "".join(process.communicate()))
                _, count, mib = line.split()
                yield int(count), int(mib)
            finally:
                process.kill()

    def is_full(self, *command: str | Path) -> None:
        """Asserts that the program came to its limit and not past it, by the driver's own ledger."""
        with self.filled(*command) as (count, step_mib):
            held = self.really_held() // MIB
            assert LIMIT_MIB - step_mib < held <= LIMIT_MIB and count * step_mib <= held
            assert self.usage().devices[0].held == held * MIB and self.usage().devices[0].refusals > 0
        self.only_passes()

    def is_held_to(self, cores: int, *command: str | Path) -> None:
        """Asserts that kernels of 2 ms got at most `cores` percent of the GPU, and that all of them ran.

        It counts from when the time is used up that was saved before. Too small a share is for `bench.compute` to find,
        because other tests make the program slower.
        """
        done = self.run(*command, str(SAVED_LAUNCHES), str(LAUNCHES), timeout=MAX_RUN_S)
        assert done.returncode == 0, done.stdout + done.stderr
        device, busy_ms = self.usage().devices[0], simgpu.read(self.folder / "machine").gpus[0].busy_ns / 1e6
        share = 100 * LAUNCHES * KERNEL_MS / int(done.stdout.split()[-1])
        assert share <= cores + 3 and device.waited_ns > 0
        assert busy_ms >= (SAVED_LAUNCHES + LAUNCHES) * KERNEL_MS
        assert abs(device.busy_ns / 1e6 - busy_ms) < 0.1 * busy_ms
        self.only_passes()

    def only_passes(self) -> None:
        """Asserts that the calls which went past the facade are of functions that it only passes on."""
        past = self.driver.past_the_facade()
        assert set(past) <= {"pass"}, past


def program(name: str) -> list[str | Path]:
    """The command for a client in Python."""
    return [sys.executable, PROGRAMS / f"{name}.py"]


def reported(box: Container, *command: str | Path) -> str:
    """What a program prints that ends well."""
    done: subprocess.CompletedProcess[str] = box.run(*command, timeout=MAX_RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
