"""The environment of a program is its own: nothing of it changes because the driver is initialized.

The same programs run on the bare driver first, which says that what they do is right.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina import native
from lamina.core.grants import ComputePolicy
from lamina.enforcement import DeviceLimit, Limits, environment, write_container
from lamina_lab import simgpu
from tests.facade.clients.counting_driver import CountingDriver
from tests.facade.conftest import MIB, PRELUDE, Container, MakeContainer
from tests.facade.driver_libraries import LIBRARIES, reported
from tests.simgpu.machines import Machine
from tests.simgpu.mps import Daemon

INIT_US = 200_000
"""As long as a test needs to change what it wants while the driver initializes."""


def slow(box: Container) -> Container:
    simgpu.write(replace(box.machine, init_us=INIT_US), box.folder / "machine")
    return box


def bare(box: Container) -> dict[str, str]:
    """The variables of a program on the machine without the facade."""
    return {**os.environ, **simgpu.environment(box.folder / "machine")}


@pytest.mark.parametrize("before", [0, 1, 50, 400])
@pytest.mark.parametrize("how", ["change", "clear", "assign"])
@pytest.mark.parametrize(("threads", "calls"), [(1, 1), (4, 500)], ids=["once", "again and at once"])
def test_other_threads_may_change_it(
    before: int, how: str, threads: int, calls: int, container: MakeContainer, programs: dict[str, Path]
) -> None:
    box = slow(container(3000))
    command = [programs["environment"], str(before), how, str(threads), str(calls)]
    for variables in (bare(box), box.environment()):
        done = subprocess.run(command, env=variables, text=True, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), "LAMINA_DIR" in variables


WRITES = {
    "environ", "__environ", "_environ", "setenv", "putenv", "unsetenv", "clearenv", "chdir", "fchdir",
    "chroot", "umask", "sigaction", "signal", "sigprocmask", "pthread_sigmask", "sigaltstack", "alarm",
    "setitimer", "timer_create", "setlocale", "setrlimit", "prlimit", "prlimit64", "prctl", "setpriority",
    "nice", "sched_setaffinity", "sched_setscheduler", "dup2", "dup3", "setsid", "setpgid", "unshare",
    "setns", "rand", "srand", "random", "strtok", "pthread_create", "atexit", "tzset", "mallopt",
    "personality",
}  # fmt: skip
"""What changes, or lets change, something that all threads of a program or its children have."""


@pytest.mark.parametrize("library", LIBRARIES.values())
def test_the_facade_can_write_nothing_that_belongs_to_the_process(library: str) -> None:
    imported = reported("nm", "-D", "--undefined-only", native.path(library)).split()
    assert "getenv" in {name.partition("@")[0] for name in imported}
    assert WRITES & {name.partition("@")[0] for name in imported} == set()


VISIBLE = "CUDA_VISIBLE_DEVICES"
PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


@pytest.mark.parametrize(
    ("own", "percent"),
    [
        (None, 30), ("", 30), ("0", 30), ("-3", 30), ("x", 30), ("100", 30), ("30.5", 30), ("30", 30), ("12.5", 12),
        ("1e1", 10), ("5", 5),
    ],
)  # fmt: skip
def test_a_client_of_mps_keeps_its_own(own: str | None, percent: int, tmp_path: Path) -> None:
    text = "gpus: [{model: A100-PCIE-40GB}]"
    machine = Machine(tmp_path / "machine", text)
    threads = {"cores_percent": 30, "compute_policy": ComputePolicy.THREADS}
    limits = Limits(devices=(DeviceLimit(uuid=machine.state().gpus[0].uuid, memory_bytes=3000 * MIB, **threads),))
    write_container(tmp_path, limits)
    daemon = Daemon(machine, tmp_path / "mps")
    script = f"""
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
before = libc.getenv(b"{PERCENTAGE}")
assert begin() == (0, 0, 0) and cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
assert libc.getenv(b"{PERCENTAGE}") == before == {None if own is None else own.encode()!r}
assert os.system('test "${{{PERCENTAGE}-unset}}" = "{"unset" if own is None else own}"') == 0
"""
    try:
        box, chosen = Container(tmp_path, simgpu.parse(text), limits), {} if own is None else {PERCENTAGE: own}
        with box.waiting(script, **daemon.env, **chosen):
            assert [each.mps_percent for each in machine.state().gpus[0].processes if each.mps_percent] == [percent]
    finally:
        daemon.end()
        machine.close()


SHOWN = """
import json
count, seen = ctypes.c_int(), []
code = cuda.cuInit(0)
cuda.cuDeviceGetCount(ctypes.byref(count))
for i in range(count.value):
    uuid = (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGetUuid(uuid, i)
    seen.append(bytes(uuid).hex())
print(json.dumps([code, seen]))
"""


def new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def shown_through(driver: CountingDriver, box: Container, wanted: str | None) -> tuple[int, list[int], str]:
    """cuInit's answer, the GPUs by their numbers on the machine, and what was said."""
    base = {**os.environ, "SIMGPU_MACHINE": str(box.folder / "machine"), **driver.environment}
    variables = environment(box.folder, driver.folder, base | ({} if wanted is None else {VISIBLE: wanted}))
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + SHOWN], env=variables, text=True, capture_output=True, timeout=60, check=True
    )
    code, seen = json.loads(done.stdout)
    known = [uuid[4:].replace("-", "") for uuid in box.uuids]
    return code, [known.index(uuid) for uuid in seen], done.stderr


@pytest.mark.parametrize(("wanted", "seen"), [(None, [2, 0]), ("1,0", [0, 2]), ("1", [0]), ("", [])])
def test_a_driver_may_be_a_loader_of_another(
    wanted: str | None, seen: list[int], container: MakeContainer, tmp_path: Path
) -> None:
    driver = CountingDriver(new_folder(tmp_path / "loader"))
    box = container(3000, gpus=3, granted=(2, 0))
    assert shown_through(driver, box, wanted) == (0 if seen else 100, seen, "")


def test_a_driver_with_other_ways_to_its_environment_shows_no_other_gpu(
    container: MakeContainer, tmp_path: Path
) -> None:
    driver = CountingDriver(new_folder(tmp_path / "loader"))
    driver.driver = Path(shutil.copy(driver.driver, tmp_path / "unknown.so"))
    assert shown_through(driver, container(3000, gpus=2, granted=(0, 1)), "1,0") == (0, [1, 0], "")
    box = container(3000, gpus=2, granted=(1,))
    assert shown_through(driver, box, box.uuids[1]) == (0, [1], "")
    refused = "[lamina] no device: the driver shows GPUs that are not in the limits\n"
    assert shown_through(driver, box, None) == (100, [], refused)
    assert shown_through(driver, box, "0") == (100, [], refused)
