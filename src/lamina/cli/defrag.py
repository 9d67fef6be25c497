"""`lamina defrag`: move pods so that GPUs become idle."""

from typing import Annotated

import typer

from lamina.cli.connection import ClusterChoice, cluster_command, with_installation
from lamina.cli.terminal import console
from lamina.defragmentation.plan import plan
from lamina.defragmentation.run import DefragRun
from lamina.operations.advise.defrag import advice
from lamina.ports.clock import SystemClock
from lamina.ports.kube import ConnectedKube
from lamina.report.cluster_reader import read


@cluster_command
def defrag(
    choice: ClusterChoice,
    moves: Annotated[int, typer.Option("--moves", min=1, help="Maximum number of pods to move.")] = 20,
    yes: Annotated[bool, typer.Option("--yes", help="Evict the pods. Without it, only the plan is printed.")] = False,
    patience: Annotated[
        float, typer.Option("--patience", min=1, help="Seconds to wait until a pod runs in place of an evicted one.")
    ] = 300.0,
) -> None:
    """Move pods so that GPUs become idle, by eviction, and stop when a pod does not move. Prints the plan first."""

    async def run(kube: ConnectedKube) -> None:
        cluster = await read(kube, hosts=True)
        console.print(f"Cluster {kube.server}", soft_wrap=True, markup=False)
        for line in advice(cluster, moves):
            console.print(line, soft_wrap=True, markup=False)
        if not yes:
            console.print("No pod was moved. Run the command with --yes to move them.", soft_wrap=True, markup=False)
            return
        work = DefragRun(kube, SystemClock(), patience_s=patience)
        async for line in work.run(cluster, list(plan(cluster, moves))):
            console.print(line, soft_wrap=True, markup=False)

    with_installation(choice, run)
