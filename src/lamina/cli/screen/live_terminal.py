"""The terminal while it shows a screen: keys one by one, the mouse, its other buffer, and everything back at the end.

Lines that did not change are not sent again, and each is sent to its own place without wrapping, so a name that a
terminal takes for wider than it is disturbs no other line. What others print on standard error meanwhile, such as a
program that logs in, is kept and printed after the end.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from rich.console import Console
from rich.text import Text

from lamina.cli.screen.keyboard import Click, KeyReader

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1000h\x1b[?1006h\x1b[H\x1b[2J"
_LEAVE = "\x1b[?1006l\x1b[?1000l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l"
"""The other buffer, without a cursor and wrapping, with the mouse; and back."""
_TOGETHER, _UNTIL_HERE = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show what is between them at once."""
_KEPT_LINES = 20


class LiveTerminal:
    """Draws on standard output, which has to be a terminal. Used within `shown`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._before: list[str] = []

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        return os.get_terminal_size(sys.stdout.fileno())

    def draw(self, lines: Sequence[Text]) -> None:
        """Show the lines in the place of those before."""
        width = self.size[0]
        after = [self._ansi(line) + ("\x1b[K" if line.cell_len < width else "") for line in lines]
        changed = [(place, line) for place, line in enumerate(after, 1) if self._before[place - 1 : place] != [line]]
        self._before = after
        if changed:
            _send(_TOGETHER + "".join(f"\x1b[{place};1H{line}" for place, line in changed) + _UNTIL_HERE)

    def forget(self) -> None:
        """Draw all lines the next time, as after a change of the size."""
        self._before = []
        _send("\x1b[H\x1b[2J")

    @contextlib.contextmanager
    def shown(
        self, pressed: Callable[[str | Click], None], resized: Callable[[], None], stopped: Callable[[int], None]
    ) -> Iterator[None]:
        """Call `pressed` with each key and click, `resized` after a change of the size, and `stopped` with the number
        of a signal that ends the program, from the running event loop. A terminal that is gone is one that hung up."""
        loop, stdin, reader = asyncio.get_running_loop(), sys.stdin.fileno(), KeyReader()
        before = termios.tcgetattr(stdin)

        def read() -> None:
            try:
                sent = os.read(stdin, 4096)
            except OSError:
                sent = b""
            if not sent:
                loop.remove_reader(stdin)
                stopped(signal.SIGHUP)
            for key in reader.read(sent):
                pressed(key)

        def suspend() -> None:
            """Ctrl-Z gives the terminal back until the program goes on."""
            _give_back(stdin, before)
            os.kill(os.getpid(), signal.SIGSTOP)
            _take(stdin)
            resized()

        handlers: dict[signal.Signals, Callable[[], None]] = {signal.SIGWINCH: resized, signal.SIGTSTP: suspend}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handlers[number] = lambda number=number: stopped(number)  # type: ignore[misc]
        earlier = {number: signal.getsignal(number) for number in handlers}
        with _errors_kept():
            try:
                _take(stdin)
                loop.add_reader(stdin, read)
                for number, handler in handlers.items():
                    loop.add_signal_handler(number, handler)
                yield
            finally:
                for number, was in earlier.items():
                    loop.remove_signal_handler(number)
                    signal.signal(number, was)
                loop.remove_reader(stdin)
                _give_back(stdin, before)

    def _ansi(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True, markup=False, highlight=False)
        return captured.get()


def _take(stdin: int) -> None:
    tty.setcbreak(stdin)
    _send(_ENTER)


def _give_back(stdin: int, before: list[object]) -> None:
    with contextlib.suppress(OSError, termios.error):  # the terminal is gone
        _send(_LEAVE)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)  # type: ignore[arg-type]


def _send(text: str) -> None:
    """Also to a terminal that cannot show each character."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def _errors_kept() -> Iterator[None]:
    """Keep what is printed on standard error, where that is a terminal, and print the last lines of it at the end."""
    if not os.isatty(2):
        yield
        return
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            for line in _last_lines(kept):
                os.write(2, line)


def _last_lines(kept: IO[bytes]) -> list[bytes]:
    """Each of the last lines once: a reading may warn of the same thing each time."""
    kept.seek(max(0, kept.seek(0, os.SEEK_END) - 100_000))
    return list(dict.fromkeys(line.rstrip(b"\r\n") + b"\n" for line in kept))[-_KEPT_LINES:]
