"""`lamina`: the verbs, and how errors become one sentence and an exit code.

A verb's own module is imported when the verb runs, so that `lamina --help` and `lamina run` start at once.
"""

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from lamina import __version__
from lamina.cli import (
    advise,
    cordon,
    daemons,
    demo,
    doctor,
    install,
    lab,
    mig,
    quotas,
    reset,
    run,
    simulate,
    uninstall,
    verify,
    view,
)
from lamina.errors import LaminaError

app = typer.Typer(
    name="lamina",
    help="Share GPUs between Kubernetes pods, and between plain processes on one machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(lab.app, name="lab")
app.command("demo")(demo.demo)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("verify")(verify.verify)
app.command("pods")(view.pods)
app.command("why")(view.why)
app.command("quotas")(quotas.quotas)
app.add_typer(advise.advise, name="advise")
app.add_typer(cordon.cordon, name="cordon")
app.add_typer(cordon.uncordon, name="uncordon")
app.add_typer(mig.mig, name="mig")
app.command("install")(install.install)
app.command("scheduler-config")(install.scheduler_config)
app.command("doctor")(doctor.doctor)
app.command("reset")(reset.reset)
app.command("uninstall")(uninstall.uninstall)
app.command("simulate")(simulate.simulate)
app.command("agent")(daemons.agent)
app.command("control")(daemons.control)
app.command("clean-node")(daemons.clean_node)


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Share GPUs between Kubernetes pods, and between plain processes on one machine."""
    if version:
        typer.echo(f"lamina {__version__}")
        raise typer.Exit


def main() -> None:
    """The console script: every error that is meant ends in one sentence on standard error.

    A terminal that is closed and a `kill` end a command as Ctrl-C does: what it had begun is taken back.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        app()
    except LaminaError as error:
        print(f"lamina: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
