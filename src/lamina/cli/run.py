"""`lamina run`: one process tree under limits on this machine, without Kubernetes."""

import sys
from typing import Annotated

import typer

from lamina.enforcement.run import run as run_limited


def run(
    command: Annotated[list[str], typer.Argument(help="Command and arguments, after --.")],
    memory: Annotated[str, typer.Option("--memory", help="GPU memory limit of the process tree, such as 5120Mi.")],
    gpu: Annotated[str, typer.Option("--gpu", help="GPU to use, by index or UUID.")] = "0",
    cores: Annotated[
        int, typer.Option("--cores", help="Compute limit in percent of the GPU's time. 0 means no limit.")
    ] = 0,
    policy: Annotated[
        str,
        typer.Option("--policy", help="How --cores applies: cap (never more), or weight (idle time is lent)."),
    ] = "cap",
    simulate: Annotated[
        str,
        typer.Option(
            "--simulate",
            help="Use a simulated GPU instead of the installed driver: MODEL, or MODEL@12.4 for a CUDA version.",
        ),
    ] = "",
) -> None:
    """Run a command under a GPU memory and compute limit."""
    sys.exit(run_limited(command, memory=memory, gpu=gpu, simulate=simulate or None, cores=cores, policy=policy))
