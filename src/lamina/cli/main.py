"""`lamina`: the commands, and how errors become one sentence and an exit code.

What a command needs is imported when the command runs, so that `lamina --help` and `lamina run` start quickly.
"""

import os
import signal
import sys
from importlib.metadata import entry_points
from types import FrameType
from typing import Annotated

import typer

from lamina import __version__
from lamina.cli import (
    admission,
    advise,
    agent,
    clean_node,
    completion,
    config,
    controller,
    cordon,
    cost,
    dashboard,
    defrag,
    doctor,
    fits,
    gpus,
    install,
    mig,
    mount_files,
    mps,
    pods,
    quotas,
    reset,
    resize,
    run,
    running_clusters,
    simulate,
    top,
    uninstall,
    verify,
    why,
)
from lamina.cli.exit_codes import ExitCode
from lamina.cli.groups import GroupedCommands
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
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("verify")(verify.verify)
app.command("completion")(completion.completion)
app.command("gpus")(gpus.gpus)
app.command("top")(top.top)
app.command("pods")(pods.pods)
app.command("why")(why.why)
app.command("fits")(fits.fits)
app.command("dashboard")(dashboard.dashboard)
app.command("cost")(cost.cost)
app.command("quotas")(quotas.quotas)
app.command("resize")(resize.resize)
app.add_typer(advise.advise, name="advise")
app.command("install")(install.install)
app.command("scheduler-config")(install.scheduler_config)
app.add_typer(config.config, name="config")
app.command("doctor")(doctor.doctor)
app.add_typer(mig.mig, name="mig")
app.add_typer(cordon.cordon, name="cordon")
app.add_typer(cordon.uncordon, name="uncordon")
app.command("simulate")(simulate.simulate)
app.command("defrag")(defrag.defrag)
app.command("reset")(reset.reset)
app.command("uninstall")(uninstall.uninstall)
app.command("agent")(agent.agent)
app.command("mount-files")(mount_files.mount_files)
app.command("mps")(mps.mps)
app.command("admission")(admission.admission)
app.command("controller")(controller.controller)
app.command("clean-node")(clean_node.clean_node)
for extension in entry_points(group="lamina.commands"):  # of other distributions, such as lamina-lab
    extension.load()(app)


@app.callback(invoke_without_command=True)
def version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Share GPUs between Kubernetes pods, and between plain processes on one machine."""
    if version:
        typer.echo(f"lamina {__version__}")
        raise typer.Exit


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
        print(f"{program}: {sentence}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)
