"""A lab for pictures, and its dashboard."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NAME = "shot"
_LAMINA = (sys.executable, "-m", "lamina")


class RunningLab(NamedTuple):
    """A lab in a folder of its own."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / NAME / "kubeconfig"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LAMINA_LABS": str(self.folder)}

    @contextlib.contextmanager
    def dashboard(self) -> Iterator[str]:
        """The address of its dashboard."""
        command = [*_LAMINA, "lab", "dashboard", "--name", NAME]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().split()[-1]
            finally:
                process.terminate()


@contextlib.contextmanager
def lab(nodes: int, gpus: int) -> Iterator[RunningLab]:
    """A lab with so many nodes, each with so many GPUs."""
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        running = RunningLab(Path(folder))
        size = ["--nodes", str(nodes), "--gpus-per-node", str(gpus)]
        subprocess.run([*_LAMINA, "lab", "up", *size, "--name", NAME], env=running.environment, check=True)
        try:
            yield running
        finally:
            subprocess.run([*_LAMINA, "lab", "down", "--name", NAME], env=running.environment, check=True)
