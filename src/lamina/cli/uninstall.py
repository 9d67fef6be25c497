"""`lamina reset` and `lamina uninstall`: stop offering GPUs, and remove everything that an installation created."""

from typing import Annotated

import typer

from lamina.cli.connection import ClusterChoice, cluster_command, confirm, with_installation
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import DryRun, Yes
from lamina.cli.terminal import console
from lamina.operations.reset import Reset
from lamina.operations.uninstall import Uninstall
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube


@cluster_command
def uninstall(
    choice: ClusterChoice,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Uninstall even while pods use GPUs. They keep running, but their usage is no longer tracked.",
        ),
    ] = False,
    patience: Annotated[
        float, typer.Option("--patience", min=0, help="Seconds to wait for agents, pods and nodes at each step.")
    ] = 120.0,
    kubelets: Annotated[
        bool,
        typer.Option("--kubelets/--no-kubelets", help="Wait until kubelets no longer report Lamina's resources."),
    ] = True,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove Lamina: the webhook first, then all components and their files on nodes. Refuses while pods use GPUs."""
    effect = "Lamina is removed, with its configuration, its CRDs and their objects, and its files on nodes."
    if not confirm(effect, choice, yes=yes, dry_run=dry_run):
        return

    async def run(kube: Kube) -> list[str]:
        removal = Uninstall(kube, SystemClock(), patience_s=patience)
        async for step in removal.run(force=force, kubelets=kubelets):
            console.print(step, soft_wrap=True, markup=False)
        return await removal.left()

    remaining = with_installation(choice, run)
    for name in remaining:
        console.print(f"Remaining: {name}", soft_wrap=True, markup=False)
    if remaining:
        raise typer.Exit(ExitCode.NO)


@cluster_command
def reset(
    choice: ClusterChoice,
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove the configuration, the certificate and the CRDs of Lamina.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option("--patience", min=0, help="Seconds to wait for each agent before cleaning its node from here."),
    ] = 20.0,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Stop offering GPUs and remove labels, annotations, resources and the webhook. Refuses while pods use GPUs."""
    effect = "Nodes stop offering GPUs; labels, annotations, resources and the webhook are removed."
    more = " The configuration, the certificate and the CRDs are removed too." if everything else ""
    if not confirm(effect + more, choice, yes=yes, dry_run=dry_run):
        return

    async def run(kube: Kube) -> None:
        async for step in Reset(kube, SystemClock(), patience_s=patience).run(everything=everything):
            console.print(step, soft_wrap=True, markup=False)

    with_installation(choice, run)
