"""The door to MPS, with the lab's program on a simulated machine and with programs that misbehave."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.errors import Outside
from lamina.ports.mps import ControlProgram, Hangs, Home
from lamina.ports.mps.program import environment
from lamina_lab import simgpu
from lamina_lab.programs import mps_control


def program(folder: Path, text: str) -> str:
    path = folder / "nvidia-cuda-mps-control"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Home]:
    """The folders of the first GPU of a simulated machine; whatever runs there is ended."""
    machine = simgpu.parse("gpus: [{model: A100-PCIE-40GB}]")
    simgpu.write(machine, tmp_path / "machine")
    for name, value in simgpu.environment(tmp_path / "machine").items():
        monkeypatch.setenv(name, value)
    made = Home(simgpu.read(tmp_path / "machine").gpus[0].uuid, tmp_path / "mps")
    made.pipe.mkdir(parents=True)
    made.log.mkdir()
    yield made
    await ControlProgram("none").end(made)


@pytest.fixture
def control(tmp_path: Path) -> ControlProgram:
    return ControlProgram(program(tmp_path, f'exec {sys.executable} -I -S {mps_control.__file__} "$@"'))


async def test_a_daemon_is_started_asked_and_ended(home: Home, control: ControlProgram) -> None:
    with pytest.raises(Outside, match="does not answer: Cannot find MPS control daemon process"):
        await control.ask(home, "get_server_list")
    await control.start(home)
    with pytest.raises(Outside, match=r"does not start: one runs already, below process [0-9]+$"):
        await control.start(home)
    await control.ask(home, "set_default_device_pinned_mem_limit 0 4096M")
    assert await control.ask(home, "get_default_device_pinned_mem_limit 0\nstart_server -uid 0") == "4096M"
    (server,) = (await control.ask(home, "get_server_list")).split()
    daemon = int((home.pipe / "nvidia-cuda-mps-control.pid").read_text())
    assert os.getsid(daemon) not in (os.getsid(0), 0), "it is in a session of its own and outlives its starter's"
    environ = Path(f"/proc/{server}/environ").read_bytes().split(b"\0")
    assert f"CUDA_VISIBLE_DEVICES={home.gpu}".encode() in environ
    os.kill(daemon, signal.SIGSTOP)
    hurried = ControlProgram(control._program, answer_s=0.2)
    with pytest.raises(Hangs, match=r"gives no answer within 0\.2 s"):
        await hurried.ask(home, "get_server_list")
    await control.end(home)
    assert not alive(daemon)
    assert not alive(int(server))
    await control.end(home)


def alive(pid: int) -> bool:
    """Whether the process runs; it may stay as a zombie where no one reaps orphans."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.root
def test_a_daemon_has_the_directory_of_its_clients_as_shared_memory(tmp_path: Path) -> None:
    """With a program that writes there, in a mount namespace of the test's own."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")
    home = Home("GPU-1", tmp_path / "mps")
    for folder in (home.log, home.shm):
        folder.mkdir(parents=True)
    name = f"lamina-test-{os.getpid()}"
    starting = ControlProgram(program(tmp_path, f"echo $1 > /dev/shm/{name}"), own_shm=True)
    asyncio.run(starting.start(home))
    assert (home.shm / name).read_text() == "-d\n"
    assert not (Path("/dev/shm") / name).exists()


async def test_a_daemon_serves_all_users_if_wanted(home: Home, tmp_path: Path) -> None:
    for multi_user, written in ((True, "-d -multiuser-server\n"), (False, "-d\n")):
        await ControlProgram(program(tmp_path, f"echo $* > {tmp_path}/options"), multi_user=multi_user).start(home)
        assert (tmp_path / "options").read_text() == written


async def test_a_program_that_is_missing_or_fails_says_so(home: Home, tmp_path: Path) -> None:
    with pytest.raises(Outside, match="/none cannot be run: No such file or directory; it comes with NVIDIA's driver"):
        await ControlProgram("/none").start(home)
    failing = ControlProgram(program(tmp_path, "echo no permission >&2; exit 3"))
    with pytest.raises(Outside, match="does not start: no permission"):
        await failing.start(home)
    with pytest.raises(Outside, match="does not answer: no permission"):
        await failing.ask(home, "get_server_list")


async def test_a_start_that_never_ends_is_given_up(home: Home, tmp_path: Path) -> None:
    slow = ControlProgram(program(tmp_path, "exec sleep 60"), answer_s=0.1)
    began = time.monotonic()
    with pytest.raises(Outside, match=r"did not start within 0\.1 s"):
        await slow.start(home)
    assert time.monotonic() - began < 30


def test_the_program_gets_its_gpu_alone(tmp_path: Path) -> None:
    found = environment(
        Home("GPU-1", tmp_path), {"PATH": "/bin", "CUDA_MPS_PIPE_DIRECTORY": "/other", "CUDA_HOME": "/x"}
    )
    assert found == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path / "GPU-1" / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(tmp_path / "GPU-1" / "log"),
    }
