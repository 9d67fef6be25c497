"""The whole cluster under test, from nothing to ready nodes and back."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lamina_lab import simgpu
from tests.cluster.components import binaries, fitness, gpus, guard, own_images
from tests.cluster.components.api_socket import Object
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.control import ControlPlane
from tests.cluster.components.node import RealNode
from tests.cluster.components.steps import Steps


class RealCluster:
    """A running cluster; `close` takes it down, and so does the end of the process that made it, however it comes."""

    def __init__(self, machines: Sequence[simgpu.Machine], steps: Steps) -> None:
        fitness.check()
        self.steps = steps
        with steps("programs: found, or fetched and built"):
            self.binaries = binaries.find()
        self.folder = Path(tempfile.mkdtemp(prefix="lamina-stage-"))
        self.group = self.folder.name
        self.nodes: list[RealNode] = []
        self._control: ControlPlane | None = None
        self._guard, self._leash = self._start_guard()
        try:
            self._up(machines)
        except BaseException:
            self.close(keep=True)
            raise

    def _start_guard(self) -> tuple["subprocess.Popen[str]", int]:
        read, write = os.pipe()
        command = [sys.executable, "-I", str(Path(guard.__file__)), str(read), str(self.folder), self.group]
        process = subprocess.Popen(command, pass_fds=[read], stdout=subprocess.PIPE, text=True, start_new_session=True)
        os.close(read)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise Unavailable("the guard of the cluster under test did not start")
        return process, write

    def _up(self, machines: Sequence[simgpu.Machine]) -> None:
        with self.steps("images"):
            self.images = own_images.write(self.folder / "images")
        with self.steps("control plane"):
            self._control = ControlPlane(self.folder / "control", self.binaries)
            self._control.start()
        with self.steps("nodes"):
            driver = gpus.install_driver(self.folder / "driver")
            for number, machine in enumerate(machines, 1):
                folder = self.folder / "nodes" / f"node{number}"
                self.nodes.append(
                    RealNode(number, len(machines), folder, self.group, machine, driver, self._control, self.binaries)
                )
            with ThreadPoolExecutor() as pool:
                list(pool.map(self._start_node, self.nodes))

    def _start_node(self, node: RealNode) -> None:
        node.start_containerd()
        for image in self.images:
            node.load(image)
        node.start_kubelet()
        node.wait()

    @property
    def control(self) -> ControlPlane:
        if self._control is None:
            raise Unavailable("the control plane was not started")
        return self._control

    def kubectl(self, *arguments: str, stdin: str = "", timeout: float = 60) -> str:
        """Standard output of kubectl as the cluster's administrator. Raises Unavailable with what it said."""
        return self.control.kubectl(*arguments, stdin=stdin, timeout=timeout)

    def read(self, path: str) -> Object:
        """What the API server has at a `Resource.path`. Raises Unavailable, and Missing where it has nothing."""
        return self.control.read(path)

    def load(self, archive: Path) -> None:
        """Import an image into every node."""
        for node in self.nodes:
            node.load(archive)

    def close(self, *, keep: bool = False) -> None:
        """Take everything away. With `keep` the folder with logs and disks stays, and its name is printed."""
        with self.steps("taking down"):
            sandboxes = [node.sandbox for node in self.nodes]
            if self._control is not None:
                sandboxes.append(self._control.sandbox)
            for sandbox in sandboxes:
                sandbox.close()
            if keep:
                os.write(self._leash, b"k")
                print(f"logs are kept in {self.folder}", file=sys.__stderr__)
            os.close(self._leash)
            self._guard.wait(2 * guard.PATIENCE_S + 10)
