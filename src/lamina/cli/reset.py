"""`lamina reset`: take everything back that Lamina put into a cluster, in order, and only while no pod uses a GPU."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.view import Kubeconfig


def reset(
    everything: Annotated[
        bool, typer.Option("--all", help="Also remove the configuration, the certificate and our kinds of objects.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option("--patience", min=0, help="Seconds to wait for agents; then nodes are cleaned for them."),
    ] = 20.0,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Have nodes offer nothing and remove labels, annotations, amounts and the webhook. Refuses while pods use GPUs."""
    asyncio.run(_reset(kubeconfig, everything=everything, patience_s=patience))


async def _reset(kubeconfig: Path | None, *, everything: bool, patience_s: float) -> None:
    from lamina.cli.resetting import Resetting
    from lamina.cli.terminal import console
    from lamina.ports.clock import SystemClock
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        async for done in Resetting(kube, SystemClock(), patience_s=patience_s).run(everything=everything):
            console.print(done, soft_wrap=True, markup=False)
    finally:
        await kube.close()
