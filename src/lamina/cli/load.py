"""`lamina load`: memory and kernels on a GPU, to see limits hold without another program."""

import math
from typing import Annotated

import typer

from lamina.cli.exit_codes import ExitCode
from lamina.cli.terminal import say
from lamina.core.quantities import parse_gpu_memory
from lamina.errors import BadInput
from lamina.operations.gpu_load import DriverError, Load


def load(
    memory: Annotated[
        str,
        typer.Option(
            "--memory", help="Memory to hold, such as 5120Mi, 5Gi or 25% of what the GPU has.", show_default=False
        ),
    ] = "",
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds to launch kernels.")] = 10.0,
    kernel_ms: Annotated[float, typer.Option("--kernel-ms", help="Milliseconds that a kernel takes.")] = 1.0,
    gpu: Annotated[int, typer.Option("--gpu", min=0, help="GPU as CUDA counts: under `lamina run`, only 0.")] = 0,
    every: Annotated[
        float, typer.Option("--every", help="Seconds between two lines. 0 prints one line at the end.")
    ] = 0.0,
) -> None:
    """Hold memory of a GPU and launch kernels, and print what it got: try it under `lamina run`.

    It ends with 1 where the driver refuses memory or a kernel, and says how much it got before.
    """
    for value, name, least in ((seconds, "--seconds", 0.0), (kernel_ms, "--kernel-ms", 0.001), (every, "--every", 0.0)):
        if not (math.isfinite(value) and least <= value <= 86_400):
            raise BadInput(f"{name} must be from {least:g} to 86400, got {value:g}")
    part = parse_gpu_memory(memory, where="--memory") if memory else None
    started: Load | None = None
    try:
        started = Load(gpu)
        free, total = started.memory_mib()
        say(f"GPU {gpu}: {total} MiB in all, {free} MiB free")
        if part is not None:
            started.hold(part.of(total, where="--memory"))
            say(f"GPU {gpu}: holds {started.held_mib} MiB")
        for line in started.work(seconds, kernel_ms, every) if seconds else ():
            say(line)
    except DriverError as refused:
        got = f"it got {started.held_mib} MiB; " if started is not None else ""
        say(f"GPU {gpu}: {got}{refused}", err=True)
        raise typer.Exit(ExitCode.NO) from refused
