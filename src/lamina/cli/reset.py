"""`lamina reset`: stop offering GPUs and remove what Lamina wrote into the cluster."""

from typing import Annotated

import typer

from lamina.cli.connection import with_cluster
from lamina.cli.options import DryRun, Kubeconfig, Yes
from lamina.cli.questions import confirm
from lamina.cli.terminal import console
from lamina.operations.reset import Reset
from lamina.ports.clock import SystemClock
from lamina.ports.kube import Kube


def reset(
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove the configuration, the certificate and the CRDs of Lamina.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option("--patience", min=0, help="Seconds to wait for each agent before cleaning its node from here."),
    ] = 20.0,
    yes: Yes = False,
    dry_run: DryRun = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Stop offering GPUs and remove labels, annotations, resources and the webhook. Refuses while pods use GPUs."""
    effect = "Nodes stop offering GPUs; labels, annotations, resources and the webhook are removed."
    more = " The configuration, the certificate and the CRDs are removed too." if everything else ""
    if not confirm(effect + more, kubeconfig, yes=yes, dry_run=dry_run):
        return

    async def run(kube: Kube) -> None:
        async for step in Reset(kube, SystemClock(), patience_s=patience).run(everything=everything):
            console.print(step, soft_wrap=True, markup=False)

    with_cluster(kubeconfig, run)
