"""Simulated machines for tests, and processes on them."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from lamina_lab import simgpu
from lamina_lab.simgpu import MachineState

WORKER = Path(__file__).with_name("worker.py")
V100 = "gpus:\n- {model: V100-SXM2-16GB, count: 2}\n"
CONTEXT_MIB = 303
TOTAL_MIB = 16160


class Process:
    """A process that evaluates expressions of worker.py."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def send(self, text: str) -> None:
        """Starts an expression without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """The result of the oldest expression not yet received."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process ended"
        return ast.literal_eval(line)

    def __call__(self, text: str) -> Any:
        self.send(text)
        return self.receive()

    def kill(self) -> None:
        """kill -9, and waits until it is gone."""
        self._process.kill()
        self._process.wait()

    def kill_unwaited(self) -> None:
        """kill -9; it stays a zombie."""
        self._process.kill()

    def end(self) -> None:
        """Closes its input; or kills it when that does not end it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Machine:
    """One simulated machine, with processes that end when it ends."""

    def __init__(self, path: Path, description: str) -> None:
        self.path = path
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "NVIDIA_", "LD_"))}
        simgpu.write(simgpu.parse(description), path)
        self.env |= simgpu.environment(path)
        self._processes: list[Process] = []

    def process(self, **env: str) -> Process:
        """A new process, with further environment variables."""
        process = Process(self.env | env)
        self._processes.append(process)
        return process

    def started(self, **env: str) -> Process:
        """A new process with a context on the first GPU."""
        process = self.process(**env)
        assert process("start()") == 0
        return process

    def state(self) -> MachineState:
        return simgpu.read(self.path)

    def used(self, gpu: int = 0) -> int:
        return self.state().gpus[gpu].used_mib

    def run(self, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
        """Runs a program on the machine to its end."""
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, timeout=120, check=False)

    def close(self) -> None:
        for process in self._processes:
            process.end()
