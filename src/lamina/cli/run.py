"""`lamina run`: one process tree under limits on this machine, without Kubernetes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.options import LocalGpuOption, Simulate
from lamina.enforcement.run import run as run_limited
from lamina.errors import BadInput
from lamina.operations.container_device import SPECS, container_device


def run(
    command: Annotated[list[str], typer.Argument(help="Command and arguments, after --.")],
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            envvar="LAMINA_RUN_MEMORY",
            help="GPU memory limit of the process tree, such as 5120Mi, 5Gi or 25%.",
        ),
    ],
    gpu: LocalGpuOption = "",
    cores: Annotated[
        int, typer.Option("--cores", help="Compute limit in percent of the GPU's time. 0 means no limit.")
    ] = 0,
    policy: Annotated[
        str,
        typer.Option("--policy", help="How --cores applies: cap (never more), or weight (idle time is lent)."),
    ] = "cap",
    cdi: Annotated[
        str,
        typer.Option(
            "--cdi",
            help="Limit the containers that have the CDI device lamina.dev/gpu=NAME, not the command: "
            "-- docker run --runtime nvidia --device lamina.dev/gpu=NAME IMAGE.",
            metavar="NAME",
        ),
    ] = "",
    cdi_dir: Annotated[Path, typer.Option("--cdi-dir", help="Where the runtime reads CDI specs.")] = SPECS,
    simulate: Simulate = "",
) -> None:
    """Run a command under a GPU memory and compute limit."""
    if cdi and simulate:
        raise BadInput("--cdi is for containers, which get the machine's own GPU; leave out --simulate")
    device = container_device(cdi, cdi_dir) if cdi else None
    sys.exit(
        run_limited(
            command, memory=memory, gpu=gpu, simulate=simulate or None, cores=cores, policy=policy, device=device
        )
    )
