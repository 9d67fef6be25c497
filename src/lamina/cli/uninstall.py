"""`lamina uninstall`: remove everything that an installation made, from the cluster and from its nodes."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.view import Kubeconfig


def uninstall(
    force: Annotated[
        bool, typer.Option("--force", help="Although pods use GPUs: they run on, and nobody counts what they hold.")
    ] = False,
    patience: Annotated[
        float, typer.Option("--patience", min=0, help="Seconds to wait for agents, pods and nodes at each step.")
    ] = 120.0,
    kubelets: Annotated[
        bool, typer.Option("--kubelets/--no-kubelets", help="Wait until kubelets have forgotten our resources.")
    ] = True,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Remove Lamina: webhook first, then all parts and what they left on nodes. Refuses while pods use GPUs."""
    asyncio.run(_uninstall(kubeconfig, force=force, patience_s=patience, kubelets=kubelets))


async def _uninstall(kubeconfig: Path | None, *, force: bool, patience_s: float, kubelets: bool) -> None:
    from lamina.cli.terminal import console
    from lamina.cli.uninstalling import Uninstalling
    from lamina.ports.clock import SystemClock
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        uninstalling = Uninstalling(kube, SystemClock(), patience_s=patience_s)
        async for done in uninstalling.run(force=force, kubelets=kubelets):
            console.print(done, soft_wrap=True, markup=False)
        left = await uninstalling.left()
    finally:
        await kube.close()
    for each in left:
        console.print(f"Left: {each}", soft_wrap=True, markup=False)
    if left:
        raise typer.Exit(1)
