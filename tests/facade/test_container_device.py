"""`lamina run --cdi`: containers of Docker and Podman get a limit by a CDI device that is there as long as the run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina.agent.containers import cdi
from lamina.errors import BadInput
from lamina.operations.container_device import container_device
from lamina_lab import simgpu
from lamina_lab.kubelet.device_manager.cdi import CdiFolders
from tests.facade import oci
from tests.facade.conftest import PRELUDE
from tests.facade.docker_engine import engine
from tests.facade.mounted import Mounted
from tests.waiting import wait_until

DEVICE = "lamina.dev/gpu=train"
PROGRAM = f"{PRELUDE}\nbegin()\nprint(take(500), take(500), free())"
HELD = "0 2 (0, "


class Machine:
    """One with a driver and a GPU, and the directory where its runtimes read specs."""

    def __init__(self, folder: Path) -> None:
        self.box = Mounted(folder, 32768)
        self.specs, self.temporary = folder / "cdi", folder / "tmp"
        self.temporary.mkdir()
        self.memory = "1000Mi"
        self.variables = {
            **os.environ,
            "SIMGPU_MACHINE": str(folder / "machine"),
            "LD_LIBRARY_PATH": str(simgpu.driver_folder()),
            "TMPDIR": str(self.temporary),
        }

    def command(self, *arguments: str) -> list[str]:
        limited = ["--cdi", "train", "--cdi-dir", str(self.specs), "--memory", self.memory, *arguments]
        return [sys.executable, "-m", "lamina", "run", *limited]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = self.command(*arguments)
        return subprocess.run(command, env=self.variables, text=True, capture_output=True, timeout=120, check=False)

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[str]"]:
        """A run whose command waits for the end of its input, in the place of `docker run`."""
        command, pipe = self.command("--", "sh", "-c", "echo ready; cat"), subprocess.PIPE
        with subprocess.Popen(command, env=self.variables, text=True, stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            (document,) = [json.loads(path.read_text()) for path in self.specs.iterdir()]
            self.box.edits = document["devices"][0]["containerEdits"]
            try:
                yield process
            finally:
                process.kill()

    @property
    def left(self) -> list[Path]:
        return [*self.specs.iterdir(), *self.temporary.iterdir()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_container_with_the_device_is_held_to_the_limit(machine: Machine) -> None:
    with machine.running():
        done = machine.box.run(sys.executable, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(HELD), done.stdout


@pytest.mark.root
@pytest.mark.parametrize("name", ["runc", "crun"])
def test_the_runtimes_of_docker_and_podman_take_the_device(name: str, machine: Machine) -> None:
    runtime = oci.runtime(name)
    with machine.running():
        done = oci.run(runtime, machine.box, sys.executable, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(HELD), done.stdout


def test_containers_with_one_device_have_the_limit_together(machine: Machine) -> None:
    machine.memory = "1500Mi"
    with machine.running():
        other = f"{PRELUDE}\nimport subprocess, time\nbegin()\nprint(take(500), flush=True)\ntime.sleep(600)"
        with machine.box.started(sys.executable, "-c", other) as first:
            assert first.stdout is not None and first.stdout.readline() == "0\n"
            done = machine.box.run(sys.executable, "-c", f"{PRELUDE}\nbegin()\nprint(take(500))")
    assert done.stdout == "2\n", done.stderr


def test_docker_asks_its_engine_for_the_device_and_the_spec_is_found(machine: Machine) -> None:
    with machine.running(), engine(machine.specs.parent / "docker.sock") as docker:
        requests = docker.requests_of("--device", DEVICE, "image")
        assert requests == [{"Driver": "cdi", "Count": 0, "DeviceIDs": [DEVICE], "Capabilities": None, "Options": None}]
        found = CdiFolders([machine.specs]).resolve([DEVICE])
    assert found.env == {cdi.VISIBLE: machine.box.gpu}
    assert "/etc/ld.so.preload" in {mount.container_path for mount in found.mounts}


def test_the_spec_has_what_version_0_5_of_the_format_has(machine: Machine) -> None:
    """Docker 25 reads versions up to 0.6."""
    with machine.running():
        (path,) = machine.specs.iterdir()
        document = json.loads(path.read_text())
    assert path.name == "lamina.dev-gpu_train.json" and not cdi.is_ours(path.name)
    assert document.keys() == {"cdiVersion", "kind", "devices"}
    assert (document["cdiVersion"], document["kind"]) == ("0.5.0", "lamina.dev/gpu")
    (device,) = document["devices"]
    assert device.keys() == {"name", "containerEdits"} and device["name"] == "train"
    assert device["containerEdits"].keys() == {"env", "mounts", "hooks"}
    for mount in device["containerEdits"]["mounts"]:
        assert mount.keys() == {"hostPath", "containerPath", "options"} and Path(mount["hostPath"]).is_absolute()


def test_the_command_is_not_limited_and_its_exit_code_is_the_runs(machine: Machine) -> None:
    script = 'test -z "$LD_PRELOAD" && test -e "$0/lamina.dev-gpu_train.json" && exit 7'
    assert machine.run("--", "sh", "-c", script, str(machine.specs)).returncode == 7
    assert machine.left == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_device_goes_with_the_run(end: signal.Signals, machine: Machine) -> None:
    with machine.running() as process:
        process.send_signal(end)
        process.wait(timeout=60)
        wait_until(lambda: not machine.left, "the run left something")


def test_a_name_that_another_run_has_is_refused_and_stays(machine: Machine) -> None:
    with machine.running():
        done = machine.run("--", "true")
        assert done.returncode == 2 and f"another run has the device {DEVICE}" in done.stderr
        assert machine.box.run(sys.executable, "-c", PROGRAM).stdout.startswith(HELD)


def test_a_simulated_gpu_is_not_for_containers(machine: Machine) -> None:
    done = machine.run("--simulate", "V100-SXM2-32GB", "--", "true")
    assert done.returncode == 2 and "leave out --simulate" in done.stderr


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "a=b", "a:b", "a" * 64])
def test_names_that_no_runtime_takes(name: str) -> None:
    with pytest.raises(BadInput, match="--cdi must be a name of at most 63 letters"):
        container_device(name)
