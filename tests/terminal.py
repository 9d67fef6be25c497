"""A command on a pseudo-terminal, as a person at a keyboard has it."""

import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from types import TracebackType

from tests.signals import signals_received
from tests.waiting import PATIENCE_S, wait_until

CTRL_C = b"\x03"
_TAKES_THE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """`lamina` with these arguments, or another module. `shown` is all that it has printed until the last look."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        width: int = 100,
        height: int = 40,
        module: str = "lamina",
    ) -> None:
        self._keyboard, inside = pty.openpty()
        termios.tcsetwinsize(inside, (height, width))
        self._before = termios.tcgetattr(self._keyboard)
        command = [sys.executable, "-c", _TAKES_THE_TERMINAL, sys.executable, "-m", module, *arguments]
        variables = os.environ | {"TERM": "xterm-256color"} | (environment or {})
        with signals_received():
            self._process = subprocess.Popen(
                command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True, env=variables
            )
        os.close(inside)
        os.set_blocking(self._keyboard, False)
        self._read = b""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._keyboard)

    @property
    def shown(self) -> str:
        try:
            while chunk := os.read(self._keyboard, 65536):
                self._read += chunk
        except OSError:  # nothing more for now, or the command has ended
            pass
        return self._read.decode(errors="replace")

    def type(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def resize(self, width: int, height: int) -> None:
        """Change the size; the kernel signals the program."""
        termios.tcsetwinsize(self._keyboard, (height, width))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self._process.send_signal(number)

    @property
    def is_as_before(self) -> bool:
        """Whether keys are read and echoed as before the program."""
        return termios.tcgetattr(self._keyboard) == self._before

    def until_shown(self, text: str) -> None:
        wait_until(lambda: text in self.shown or self._process.poll() is not None, lambda: self.shown)
        assert text in self.shown, self.shown

    def ended(self) -> int:
        """The exit code, once there is one. What is printed is read meanwhile, or the command would wait for it."""
        wait_until(lambda: self.shown is not None and self._process.poll() is not None, lambda: self.shown, PATIENCE_S)
        return int(self._process.returncode)

    @property
    def others(self) -> list[int]:
        """What still runs of what the command started in its terminal."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--sid", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]
