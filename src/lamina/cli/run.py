"""`lamina run`: one process tree under a limit on this machine, without Kubernetes."""

import sys
from typing import Annotated

import typer


def run(
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
    memory: Annotated[str, typer.Option("--memory", help="GPU memory for the whole process tree, such as 5120Mi.")],
    gpu: Annotated[str, typer.Option("--gpu", help="Which GPU, by index or UUID.")] = "0",
    cores: Annotated[int, typer.Option("--cores", help="Percent of the GPU's time; 0 is no limit.")] = 0,
    policy: Annotated[
        str, typer.Option("--policy", help="How --cores holds: cap, or weight, which lends what others leave.")
    ] = "cap",
    simulate: Annotated[
        str, typer.Option("--simulate", help="Use a simulated GPU of this model instead of the driver's.")
    ] = "",
) -> None:
    """Run a command whose processes together get no more of a GPU than this."""
    from lamina.enforcement.run import run

    sys.exit(run(command, memory=memory, gpu=gpu, simulate=simulate or None, cores=cores, policy=policy))
