"""`lamina`: the command line, and how errors become one sentence and an exit code."""

import os
import signal
import sys
from importlib.metadata import entry_points
from types import FrameType
from typing import Annotated

import typer

from lamina import __version__
from lamina.cli import running_clusters
from lamina.cli.exit_codes import ExitCode
from lamina.cli.groups import GroupedCommands
from lamina.cli.options import set_lamina_namespace
from lamina.cli.terminal import say
from lamina.errors import BadInput, LaminaError, NoKubeconfig

app = typer.Typer(
    name="lamina",
    cls=GroupedCommands,
    help="Share GPUs between Kubernetes pods, and between plain processes on one machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for extension in entry_points(group="lamina.commands"):  # of other distributions, such as lamina-lab
    extension.load()(app)


@app.callback(invoke_without_command=True)
def shared_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    lamina_namespace: Annotated[
        str,
        typer.Option(
            "--lamina-namespace",
            envvar="LAMINA_NAMESPACE",
            help="Namespace in which Lamina is installed. Commands look it up without it.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Share GPUs between Kubernetes pods, and between plain processes on one machine."""
    if version:
        say(f"lamina {__version__}")
        raise typer.Exit
    set_lamina_namespace(lamina_namespace)


_COMPLETE = "_LAMINA_COMPLETE"
"""The variable by which programs with the same library print their completion."""


def main(program: str = "lamina") -> None:
    """The console script: an expected error ends in one sentence on standard error.

    `program` is how a person calls it, which usage and sentences repeat. A closed terminal and `kill`
    end a command as Ctrl-C does, so that it cleans up.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        if _COMPLETE in os.environ:
            raise BadInput(f"{_COMPLETE} is not supported; use `source <(lamina completion bash)`")
        app(prog_name=program)
    except LaminaError as error:
        hint = running_clusters.hint() if isinstance(error, NoKubeconfig) else ""
        sentence = f"{error}{hint}".replace("`lamina ", f"`{program} ")
        say(f"{program}: {sentence}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
