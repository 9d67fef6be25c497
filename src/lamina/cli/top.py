"""`lamina top`: what GPUs and containers use, live."""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from lamina.cli.connection import ClusterChoice, cluster_command, with_cluster
from lamina.cli.options import one_of
from lamina.cli.terminal import console
from lamina.cli.top_screen import ORDERS, ShownReading, TopScreen
from lamina.errors import BadInput, LaminaError
from lamina.operations import agent_metrics
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.kube import ProxiedKube
from lamina.ports.kube.moments import rfc3339
from lamina.report import cluster_reader
from lamina.report.gpus import gpu_rows
from lamina.report.shares import all_shares

_WIDTH_OF_A_FILE = 160
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


@cluster_command
def top(
    choice: ClusterChoice,
    node: Annotated[str, typer.Option("--node", help="Only nodes whose names contain this.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only namespaces whose names contain this.")] = "",
    pod: Annotated[str, typer.Option("--pod", help="Only pods whose names contain this.")] = "",
    model: Annotated[str, typer.Option("--model", help="Only GPUs whose model contains this.")] = "",
    sort: Annotated[str, typer.Option("--sort", help="Order: used, busy, limit, refused, pod or node.")] = "used",
    gpus: Annotated[bool, typer.Option("--gpus", help="Begin with GPUs instead of the shares of pods.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.5, help="Seconds between two readings.")] = 3.0,
    once: Annotated[bool, typer.Option("--once", help="Print all rows once, without keys.")] = False,
) -> None:
    """Show live what GPUs and containers use: memory, peak, compute and refusals.

    Keys: q quits, g shows GPUs, p pods, s sorts by the next column, r reverses, / filters, such as `node=n1 web`.
    """
    one_of(sort, ORDERS, "--sort")
    chosen = {"node": node, "namespace": namespace, "pod": pod, "model": model}
    words = [f"{key}={part}" for key, value in chosen.items() for part in value.split()]
    screen = TopScreen(order=sort, gpus=gpus, filter=" ".join(words))
    if once:
        with_cluster(choice, lambda kube: read_once(kube, screen, SystemClock()))
        number = len(screen.usage.gpus if gpus else screen.usage.shares)
        for line in screen.lines(_WIDTH_OF_A_FILE, number + 5)[:-1]:
            typer.echo(line)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("lamina top needs a terminal; use --once to print all rows once")
    with_cluster(choice, lambda kube: _show(kube, screen, every))


async def read_once(kube: ProxiedKube, screen: TopScreen, clock: Clock) -> None:
    """Read the cluster into the screen. Raises Outside, BadInput."""
    cluster = await cluster_reader.read(kube, claims=True)
    use = await agent_metrics.read_use(kube, cluster.inventories, cluster.pods)
    moment = rfc3339(clock.wall()).partition("T")[2]
    screen.usage = ShownReading(gpu_rows(cluster, use), all_shares(cluster, use), moment, len(use.silent))


async def refresh(kube: ProxiedKube, screen: TopScreen, clock: Clock) -> None:
    """Read the cluster; where that fails, the screen keeps what it had and warns until the cluster answers again."""
    try:
        await read_once(kube, screen, clock)
        screen.warning = ""
    except LaminaError as error:
        screen.warning = str(error)


async def _show(kube: ProxiedKube, screen: TopScreen, every: float) -> None:
    """Show the screen until a key ends it."""
    changed = asyncio.Event()

    def pressed(key: str) -> None:
        screen.press(key, page=max(1, size()[1] - 5))
        changed.set()

    async def read() -> None:
        while True:
            await refresh(kube, screen, SystemClock())
            changed.set()
            await asyncio.sleep(every)

    with keyboard(pressed, changed.set):
        reading = asyncio.create_task(read())
        try:
            while not screen.ended:
                draw(screen.lines(*size()))
                await changed.wait()
                changed.clear()
                if reading.done():
                    reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


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
