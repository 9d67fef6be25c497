"""Daemons of MPS on simulated machines, by the lab's program."""

import os
import signal
import sys
from pathlib import Path

from lamina_lab.programs import mps_control
from tests.simgpu.machines import Machine

PROGRAM = (sys.executable, "-I", "-S", str(Path(mps_control.__file__)))


class Daemon:
    """A daemon of some GPUs of a machine, by their indices or UUIDs."""

    def __init__(self, machine: Machine, folder: Path, gpus: str = "0", *options: str) -> None:
        self.machine, self.options = machine, options
        self.pipe, self.log = folder / "pipe", folder / "log"
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": str(self.pipe)}
        self._own = self.env | {"CUDA_MPS_LOG_DIRECTORY": str(self.log), "CUDA_VISIBLE_DEVICES": gpus}
        self.start()

    def start(self) -> None:
        started = self.machine.run(*PROGRAM, "-d", *self.options, **self._own)
        assert started.returncode == 0, started.stderr

    def ask(self, *commands: str) -> list[str]:
        text = "\n".join(commands)
        shell = ("sh", "-c", f'printf "%s" "$0" | {" ".join(PROGRAM)}', text)
        return self.machine.run(*shell, **self._own).stdout.splitlines()

    @property
    def pid(self) -> int:
        return int((self.pipe / "nvidia-cuda-mps-control.pid").read_text())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """However it is: killed, if it is there."""
        if (self.pipe / "nvidia-cuda-mps-control.pid").exists():
            try:
                self.kill()
            except ProcessLookupError:
                return
