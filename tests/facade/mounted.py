"""A container with real mounts over a simulated machine: the agent's own CDI spec, in a mount namespace."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina import native
from lamina.agent.containers.cdi import file_name
from lamina.agent.containers.paths import FacadeLibraries, HostPaths, install_libraries, write_limits
from lamina.agent.prepare.plan import PodRef, make_plan
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.ports.files import Files
from lamina.ports.nvml.fake import fake_gpus
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.facade import runtime

NAME = "0123456789abcdef0123456789abcdef"


def unshare() -> list[str]:
    """How this user gets a mount namespace. Skips the test where no one allows one."""
    command = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    try:
        allowed = subprocess.run([*command, "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare program")
    if allowed.returncode != 0:
        pytest.skip("mount namespaces are not allowed here; run as root or allow user namespaces")
    return command


class Mounted:
    """One container of one GPU with so many MiB. `host` is the folder that stands for the node, `driver` that of its
    driver."""

    def __init__(self, host: Path, mib: int, *, nvidia_first: bool = False, driver: Path | None = None) -> None:
        self.host, self.command = host, unshare()
        self.nvidia_first = nvidia_first
        self.image: list[tuple[Path, str]] = []
        self.links: list[tuple[str, str]] = []
        machine = simgpu.Machine(gpus=(simgpu.GpuSpec(model="V100-SXM2-32GB"),), seed=str(host))
        simgpu.write(machine, host / "machine")
        self.gpu = gpu = place(machine)[0].uuid
        facts = fake_gpus(1)[0]
        self.driver = driver or simgpu.driver_folder()
        self.libraries: FacadeLibraries = install_libraries(
            native.path("facade/libcuda.so.1").parent, host / "lib", Files(), self.driver
        )
        places = HostPaths(host / "containers", host / "cdi", self.driver, self.libraries)
        container = ContainerGrant(name="main", shares=(Share(gpu=gpu, memory_mib=mib, cores=0, mode=Mode.QUOTA),))
        made = make_plan({NAME: container}, PodRef("n", "p", "u"), {gpu: ObservedGpu(facts)}, places)
        (self.folder,) = made.folders
        self.folder.mkdir(parents=True)
        write_limits(self.folder, container, container.shares)
        document = json.loads(made.specs({})[places.cdi / file_name(NAME)])
        self.edits = document["devices"][0]["containerEdits"]

    def show(self, folder: Path, inside: str, *, writable: bool = False) -> None:
        """A further folder of the node in the container, as a volume is."""
        options = ["rw" if writable else "ro"]
        self.edits["mounts"].append({"hostPath": str(folder), "containerPath": inside, "options": options})

    def run(self, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a program in the container, started again with its files."""
        start, outer = self._start(command, more)
        return subprocess.run(start, env=outer, text=True, capture_output=True, timeout=120, check=False)

    @contextmanager
    def started(self, *command: str | Path, **more: str) -> Iterator["subprocess.Popen[str]"]:
        """The same for a program that runs until it is not needed any more."""
        start, outer = self._start(command, more)
        with subprocess.Popen(start, env=outer, text=True, stdout=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def _start(self, command: Sequence[str | Path], more: Mapping[str, str]) -> tuple[list[str | Path], dict[str, str]]:
        """A command that starts the container, and its environment."""
        number = len(list(self.host.glob("start-*")))
        start = self.host / f"start-{number}"
        (start / "root").mkdir(parents=True)
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SIMGPU_MACHINE": str(self.host / "machine"), **more}
        asked = runtime.Plan(
            root=str(start / "root"),
            edits=self.edits,
            driver=str(self.driver),
            nvidia_first=self.nvidia_first,
            image=[(str(content), inside) for content, inside in self.image],
            links=self.links,
            env=env,
        )
        (start / "plan.json").write_text(json.dumps(asked))
        outer = {**os.environ, **({} if os.geteuid() == 0 else {"ROOTLESS": "1"})}
        return [*self.command, sys.executable, runtime.__file__, start / "plan.json", *command], outer
