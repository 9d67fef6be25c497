"""A terminal that shows one screen after another and reads keys."""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence

from lamina.cli.terminal import console

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""The other screen of the terminal without a cursor, and back."""
_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "erase",
    "\x08": "erase",
    "\x1b": "escape",
}


def keys_in(text: str) -> Iterator[str]:
    """The keys in what a terminal sends at once. Keys without a meaning here are left out."""
    while text:
        found = max((each for each in _KEYS if text.startswith(each)), key=len, default="")
        if found == "\x1b" and len(text) > 1:
            text = text[1:].lstrip("[O").lstrip("0123456789;")[1:]  # the sequence of another key
            continue
        if found:
            yield _KEYS[found]
        elif text[0].isprintable():
            yield text[0]
        text = text[len(found) or 1 :]


def frame(lines: Sequence[str]) -> str:
    """What shows the lines in place of those before, without clearing the screen first, which would flicker."""
    return "\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J"


def size() -> tuple[int, int]:
    """Columns and lines."""
    return console.size.width, console.size.height


def draw(lines: Sequence[str]) -> None:
    sys.stdout.write(frame(lines))
    sys.stdout.flush()


@contextlib.contextmanager
def keyboard(pressed: Callable[[str], None], resized: Callable[[], None]) -> Iterator[None]:
    """Call `pressed` with each key and `resized` after each change of the size, from the running event loop."""
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def read() -> None:
        for key in keys_in(os.read(stdin, 1024).decode(errors="ignore")):
            pressed(key)

    tty.setcbreak(stdin)
    sys.stdout.write(_ENTER)
    loop.add_reader(stdin, read)
    loop.add_signal_handler(signal.SIGWINCH, resized)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_reader(stdin)
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
