"""`lamina top`: what GPUs and containers use, live.

The screen is drawn with rich, which the command line has anyway. Textual would bring the mouse and tables too, but
takes a second longer to start and seven more packages.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any

import typer

from lamina.cli.connection import ClusterChoice, cluster_command, cluster_name, here_instead, with_cluster_or_here
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import Local, one_of
from lamina.cli.screen.frame import frame, plain_lines
from lamina.cli.screen.keyboard import Click
from lamina.cli.screen.live_terminal import LiveTerminal
from lamina.cli.screen.rows import ORDERS
from lamina.cli.screen.source import TopCluster, TopMachine, TopSource
from lamina.cli.screen.state import PodName, TopScreen
from lamina.cli.screen.text import ASCII, UNICODE
from lamina.cli.terminal import console, say
from lamina.errors import BadInput, LaminaError
from lamina.ports.clock import Clock, SystemClock

_AROUND = 6
"""Lines of a screen that are no rows."""


@cluster_command
def top(
    choice: ClusterChoice,
    node: Annotated[str, typer.Option("--node", help="Only nodes whose names contain this.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Only namespaces whose names contain this.")] = "",
    pod: Annotated[str, typer.Option("--pod", help="Only pods whose names contain this.")] = "",
    model: Annotated[str, typer.Option("--model", help="Only GPUs whose model contains this.")] = "",
    sort: Annotated[str, typer.Option("--sort", help=f"Order: {', '.join(ORDERS[:-1])} or {ORDERS[-1]}.")] = "used",
    gpus: Annotated[bool, typer.Option("--gpus", help="Begin with GPUs instead of the shares of pods.")] = False,
    every: Annotated[float, typer.Option("--every", min=0.5, help="Seconds between two readings.")] = 3.0,
    once: Annotated[bool, typer.Option("--once", help="Print all rows once, without keys.")] = False,
    local: Local = False,
) -> None:
    """Show live what GPUs and containers use: memory, peak, compute and refusals.

    Keys: up and down select a row, enter shows its details, w why a pod waits, g GPUs, p pods, s sorts by the next
    column, r reverses, / filters, such as `node=n1 web`, ? shows all keys, and q quits. The mouse selects and sorts
    too. NO_COLOR turns colors off.
    """
    one_of(sort, ORDERS, "--sort")
    chosen = {"node": node, "namespace": namespace, "pod": pod, "model": model}
    words = [f"{key}={part}" for key, value in chosen.items() for part in value.split()]
    screen = TopScreen(order=sort, gpus=gpus, filter=" ".join(words))
    if not once:
        _check_terminal()
    clock = SystemClock()

    async def show(source: TopSource, said: Sequence[str] = ()) -> None:
        if not once:
            await _Live(source, screen, clock).run(every)
            return
        screen.take(await source.read())
        for line in (*said, *plain_lines(screen)):
            say(line)

    async def here() -> None:
        machine = TopMachine(clock)
        await show(machine, [here_instead(machine.name, local=local)])

    with_cluster_or_here(
        choice, lambda kube: show(TopCluster(kube, clock, "" if once else cluster_name(choice))), here, local=local
    )


def _check_terminal() -> None:
    """Raises BadInput."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("lamina top needs a terminal; use --once to print all rows once")
    if console.is_dumb_terminal:
        raise BadInput("lamina top needs a terminal whose cursor moves, and TERM is dumb; use --once")


async def refresh(source: TopSource, screen: TopScreen) -> None:
    """Read once; where that fails, the screen keeps what it had and warns until the source answers again.

    Raises LaminaError where it has nothing yet.
    """
    try:
        screen.take(await source.read())
    except LaminaError as error:
        if screen.reading.at is None:
            raise
        screen.warning = str(error)


class _Live:
    """The screen, kept up to date until a key or a signal ends it."""

    def __init__(self, source: TopSource, screen: TopScreen, clock: Clock) -> None:
        self._source, self._screen, self._clock = source, screen, clock
        self._terminal = LiveTerminal(console)
        self._glyphs = ASCII if console.options.ascii_only else UNICODE
        self._changed = asyncio.Event()
        self._signal = 0
        self._asked: PodName | None = None
        self._answering: asyncio.Task[None] | None = None
        screen.source = source.name

    async def run(self, every: float) -> None:
        """Show the screen. Raises LaminaError where the first reading fails."""
        with self._terminal.shown(self._pressed, self._resized, self._stopped):
            async with _canceled_after(self._read(every)) as reading:
                while not self._screen.ended:
                    self._terminal.draw(frame(self._screen, *self._terminal.size, self._glyphs))
                    await self._changed.wait()
                    self._changed.clear()
                    if reading.done():
                        reading.result()
                    self._ask()
        if self._signal:
            raise typer.Exit(ExitCode.INTERRUPTED if self._signal == signal.SIGINT else 128 + self._signal)

    async def _read(self, every: float) -> None:
        """Read again and again, but never for more than half of the time."""
        while True:
            began = self._clock.monotonic()
            try:
                await refresh(self._source, self._screen)
            finally:
                self._changed.set()
            await self._clock.sleep(max(every, self._clock.monotonic() - began))

    def _ask(self) -> None:
        """Ask for the reasons that a key has asked for. The reasons of the pod before are not waited for."""
        if self._screen.asked == self._asked:
            return
        self._asked = self._screen.asked
        if self._answering is not None:
            self._answering.cancel()
        self._answering = asyncio.create_task(self._answer(self._asked)) if self._asked else None

    async def _answer(self, name: PodName) -> None:
        try:
            lines = await self._source.why(*name)
        except LaminaError as error:
            lines = [str(error)]
        self._screen.explain(name, lines)
        self._changed.set()

    def _pressed(self, key: str | Click) -> None:
        if isinstance(key, Click):
            self._screen.click(*key)
        elif key == "ctrl-l":
            self._terminal.forget()
        else:
            self._screen.press(key, page=max(1, self._terminal.size[1] - _AROUND))
        self._changed.set()

    def _resized(self) -> None:
        self._terminal.forget()
        self._changed.set()

    def _stopped(self, number: int) -> None:
        self._signal, self._screen.ended = number, True
        self._changed.set()


@contextlib.asynccontextmanager
async def _canceled_after(work: Coroutine[Any, Any, None]) -> Any:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
