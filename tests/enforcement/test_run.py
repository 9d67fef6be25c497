"""`lamina run`: a process tree under a limit, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina import native
from lamina.enforcement import driver
from lamina.enforcement.run import run
from lamina.errors import BadInput, LaminaError, Outside
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.signals import INHERITED, SIGNALS, inherited_by, signals_received
from tests.waiting import wait_until

MODEL = "V100-SXM2-32GB"
MEMORY = """
import ctypes
library = ctypes.CDLL("libnvidia-ml.so.1")
library.nvmlInit_v2()
device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
library.nvmlDeviceGetMemoryInfo(device, memory)
"""


@pytest.fixture(autouse=True)
def private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def code_of(*command: str, **how: Any) -> int:
    return run(command, **{"memory": "3000", "simulate": MODEL, **how})


def test_the_command_sees_its_limit(private_folder: Path) -> None:
    script = MEMORY + f"raise SystemExit(0 if memory[0] == {3000 << 20} else 1)"
    assert code_of(sys.executable, "-c", script) == 0
    assert code_of("sh", "-c", f'{sys.executable} -c "$0"', script) == 0, "its children too"
    assert list(private_folder.iterdir()) == []


@pytest.mark.parametrize(("model", "version"), [(MODEL, 13000), (f"{MODEL}@12.4", 12040), (f"{MODEL}@11.7", 11070)])
def test_the_simulated_driver_is_current_or_the_chosen_one(model: str, version: int) -> None:
    script = (
        "import ctypes; version = ctypes.c_int(); cuda = ctypes.CDLL('libcuda.so.1'); "
        f"cuda.cuDriverGetVersion(ctypes.byref(version)); raise SystemExit(version.value != {version})"
    )
    assert code_of(sys.executable, "-c", script, simulate=model) == 0


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_its_exit_code_is_the_commands(script: str, code: int, private_folder: Path) -> None:
    assert code_of("sh", "-c", script) == code
    assert list(private_folder.iterdir()) == []


@pytest.mark.parametrize(
    "how",
    [
        {"memory": ""}, {"memory": "0"}, {"memory": "-1"}, {"memory": "1.5Gi"}, {"memory": "5MB"}, {"memory": "32769"},
        {"gpu": "1"}, {"gpu": "GPU-"}, {"gpu": "x"}, {"simulate": "V9000"},
        {"simulate": f"{MODEL}@9.9"}, {"simulate": f"{MODEL}@"},
        {"cores": 101}, {"cores": -1}, {"cores": 10, "policy": "force"}, {"policy": ""},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_are_one_sentence(how: dict[str, Any], private_folder: Path) -> None:
    with pytest.raises(BadInput) as wrong:
        code_of("touch", str(private_folder / "started"), **how)
    assert "\n" not in str(wrong.value)
    assert list(private_folder.iterdir()) == []


WORK = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, module, spin, ns = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(2_000_000)
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
cuda.cuModuleLoadData(ctypes.byref(module), b"simgpu")
cuda.cuModuleGetFunction(ctypes.byref(spin), module, b"spin")
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
begin = time.monotonic()
for _ in range(100):
    assert cuda.cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, None, parameters, None) == 0
cuda.cuCtxSynchronize()
took = time.monotonic() - begin
raise SystemExit(0 if float(sys.argv[1]) < took < float(sys.argv[2]) else f"it took {took}")
"""


@pytest.mark.parametrize(
    ("cores", "policy", "least", "most"), [(0, "cap", 0.19, 1), (20, "cap", 0.7, 5), (20, "weight", 0.19, 0.7)]
)
def test_cores_bound_the_time_of_the_gpu_that_a_command_gets(
    cores: int, policy: str, least: float, most: float
) -> None:
    """200 ms of work on an idle GPU. Real time: on a busy machine, any one try may be late."""

    def work() -> int:
        return code_of(sys.executable, "-c", WORK, str(least), str(most), cores=cores, policy=policy)

    assert any(work() == 0 for _ in range(3))


def test_a_command_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadInput, match="no-such-program"):
        code_of("no-such-program")
    with pytest.raises(BadInput, match="no command"):
        code_of()


@contextmanager
def other_process(folder: Path, *command: str) -> Iterator["subprocess.Popen[str]"]:
    script = f"from lamina.enforcement.run import run; raise SystemExit(run({list(command)!r}, memory='1Gi', simulate={MODEL!r}))"  # noqa: E501
    variables = {**os.environ, "TMPDIR": str(folder)}
    with signals_received():
        process = subprocess.Popen(
            [sys.executable, "-c", script], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    try:
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_command_and_nothing_stays(number: signal.Signals, private_folder: Path) -> None:
    waiting = "trap 'echo stopped; exit 5' TERM INT HUP; echo ready; while :; do sleep 0.01; done"
    with other_process(private_folder, "sh", "-c", waiting) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.communicate(timeout=60)[0] == "stopped\n"
        assert process.returncode == 5
    assert list(private_folder.iterdir()) == []


@pytest.mark.parametrize(("ignored", "blocked"), INHERITED)
def test_the_command_has_signals_as_without_limits(
    ignored: Sequence[signal.Signals], blocked: Sequence[signal.Signals], private_folder: Path
) -> None:
    script = f"from lamina.enforcement.run import run; run({list(SIGNALS)!r}, memory='1Gi', simulate={MODEL!r})"
    limited = [sys.executable, "-c", script]
    assert inherited_by(limited, ignored, blocked) == inherited_by(SIGNALS, ignored, blocked)


def test_a_run_that_is_killed_takes_its_whole_tree_with_it(private_folder: Path) -> None:
    tree = "setsid sleep 600 & echo ready; exec sleep 600"
    with other_process(private_folder, "sh", "-c", tree) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.kill()
        assert process.communicate(timeout=60) == ("", ""), "until no one has its output open any more"
        wait_until(lambda: not list(private_folder.iterdir()), "its folder stays")


LIMITS = f"""
import ctypes, sys, time
from pathlib import Path
deadline = time.monotonic() + 60
while not Path(sys.argv[1]).exists() and time.monotonic() < deadline:
    time.sleep(0.01)
{MEMORY}
Path(sys.argv[2]).write_text(str(memory[0] >> 20))
"""


def test_what_a_command_leaves_running_keeps_its_limit(private_folder: Path) -> None:
    """A server that became a daemon still starts programs under it, and the run ends after it."""
    gone, seen = (private_folder.with_name(private_folder.name + end) for end in ("-gone", "-seen"))
    server = f"setsid nohup {sys.executable} -c '{LIMITS}' {gone} {seen} >/dev/null 2>&1 & echo ready"
    with other_process(private_folder, "sh", "-c", server) as process:
        assert process.stderr is not None and "Their limits end with this command" in process.stderr.readline()
        gone.touch()
        assert process.wait(timeout=60) == 0
    assert seen.read_text() == "1024"
    assert list(private_folder.iterdir()) == []


def test_a_signal_ends_what_a_command_left_running(private_folder: Path) -> None:
    with other_process(private_folder, "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo ready; exit 3") as process:
        assert process.stderr is not None and "it waits for them" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 3
    assert list(private_folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_shell_ends_what_it_has_started(private_folder: Path, number: signal.Signals) -> None:
    """A shell hands no signal on to its programs, and the caller of the run knows none of them."""
    shell = "trap 'exit 5' TERM HUP; sleep 600 & echo ready; wait"
    with other_process(private_folder, "sh", "-c", shell) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == 5
    assert list(private_folder.iterdir()) == []


def test_signals_at_any_moment_leave_nothing(private_folder: Path) -> None:
    for delay in range(0, 300, 30):
        with other_process(private_folder, "sleep", "600") as process:
            time.sleep(delay / 1000)  # the moments of starting a process can only be hit by time
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
        assert list(private_folder.iterdir()) == []


@pytest.fixture
def machine(private_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A simulated driver where the loader would find a real one; gives the UUIDs of its GPUs."""
    described = simgpu.Machine(gpus=(simgpu.GpuSpec(model=MODEL, count=3),), seed=str(private_folder))
    where = private_folder / "machine"
    simgpu.write(described, where)
    monkeypatch.setenv("SIMGPU_MACHINE", str(where))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(simgpu.driver_folder()))
    return [gpu.uuid for gpu in place(described)]


def test_the_machines_own_driver_is_found_and_asked(machine: list[str], tmp_path: Path) -> None:
    found = driver.find_driver()
    assert found == simgpu.driver_folder()
    script = f"""
import sys
sys.path[:] = {sys.path!r}
from pathlib import Path
from lamina.enforcement.driver import choose
from lamina.enforcement.driver_query import gpus
found = gpus(Path({str(found)!r}))
print(*[gpu.uuid for gpu in found], choose(found, "1").uuid, choose(found, found[2].uuid[:12]).index)
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert output == [*machine, machine[1], "2"]


@pytest.mark.parametrize("wanted", ["3", "-1", "GPU-ffffffff", "", "GPU-", "01x"])
def test_a_gpu_that_is_not_there_is_refused(wanted: str) -> None:
    found = tuple(driver.LocalGpu(i, f"GPU-{i}000", MODEL, 32768) for i in range(3))
    with pytest.raises(BadInput, match="0 \\(GPU-0000\\)"):
        driver.choose(found, wanted)


def test_a_facade_is_not_taken_for_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(native.path("facade/libcuda.so.1").parent))
    monkeypatch.setattr(driver, "_cached", lambda: iter(()))
    monkeypatch.setattr(driver, "_DIRECTORIES", ())
    with pytest.raises(Outside, match="no NVIDIA driver"):
        driver.find_driver()


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch, private_folder: Path) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(driver, "_cached", lambda: iter(()))
    monkeypatch.setattr(driver, "_DIRECTORIES", ())
    with pytest.raises(LaminaError, match="--simulate"):
        run(["true"], memory="1Gi")
    assert list(private_folder.iterdir()) == []
