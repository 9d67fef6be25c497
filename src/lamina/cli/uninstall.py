"""`lamina uninstall`: remove everything that an installation created, from the cluster and from its nodes."""

from typing import Annotated

import typer

from lamina.cli.connection import with_cluster
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import DryRun, Kubeconfig, Yes
from lamina.cli.questions import confirm
from lamina.cli.terminal import console
from lamina.operations.uninstall import Uninstall
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube


def uninstall(
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
    kubeconfig: Kubeconfig = None,
) -> None:
    """Remove Lamina: the webhook first, then all components and their files on nodes. Refuses while pods use GPUs."""
    effect = "Lamina is removed, with its configuration, its CRDs and their objects, and its files on nodes."
    if not confirm(effect, kubeconfig, yes=yes, dry_run=dry_run):
        return

    async def run(kube: Kube) -> list[str]:
        removal = Uninstall(kube, SystemClock(), patience_s=patience)
        async for step in removal.run(force=force, kubelets=kubelets):
            console.print(step, soft_wrap=True, markup=False)
        return await removal.left()

    remaining = with_cluster(kubeconfig, run)
    for name in remaining:
        console.print(f"Remaining: {name}", soft_wrap=True, markup=False)
    if remaining:
        raise typer.Exit(ExitCode.NO)
