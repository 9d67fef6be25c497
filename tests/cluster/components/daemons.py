"""Programs that run in a sandbox until they are stopped, each with a log."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.cluster.components.commands import Unavailable
from tests.cluster.components.sandboxes import Sandbox, child_of

STOP_S = 15.0


class Daemon:
    """A program in a sandbox; it may be stopped, killed and started again."""

    def __init__(
        self, sandbox: Sandbox, name: str, command: list[str | Path], env: Mapping[str, str], log: Path
    ) -> None:
        self.name, self.log = name, log
        self.sandbox = sandbox
        self._command, self._env = command, dict(env)
        self._entered: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._entered = subprocess.Popen(
                self.sandbox.command(*self._command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._env,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._entered is not None and self._entered.poll() is None

    @property
    def pid(self) -> int:
        """The program's, as seen from outside of the sandbox."""
        if self._entered is None:
            raise Unavailable(f"{self.name} was not started")
        return child_of(self._entered.pid)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Signal the program, and return when it has ended; it is killed when it takes too long."""
        if self._entered is None or self._entered.poll() is not None:
            return
        with suppress(ProcessLookupError, Unavailable):
            os.kill(self.pid, number)
        self.go_on()
        try:
            self._entered.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, Unavailable):
                os.kill(self.pid, signal.SIGKILL)
            self._entered.wait(STOP_S)

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """Let the program stand still, with all that it has open."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on. nsenter, which entered the sandbox for it, stands still with it, and wakes it up."""
        if self._entered is not None:
            self._entered.send_signal(signal.SIGCONT)

    def restart(self, number: int = signal.SIGTERM) -> None:
        self.stop(number)
        self.start()

    def until(self, ready: Callable[[], bool], what: str, timeout: float = 90) -> None:
        """Wait until `ready`. Raises Unavailable with the end of the log when the program ends before, or time does."""
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running or time.monotonic() > deadline:
                state = "runs" if self.running else "has ended"
                output = self.log.read_text(errors="replace").splitlines()[-6:]
                raise Unavailable(f"{self.name} {state}, and {what} did not come about: {' | '.join(output)}")
            time.sleep(0.1)
