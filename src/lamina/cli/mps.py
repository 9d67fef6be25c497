"""`lamina mps`: the component that runs the MPS daemons of a node."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.service_options import LogLevel, MpsSocket, SelinuxType, configure_logging
from lamina.mps.local_daemons import local_daemons
from lamina.mps.service import run
from lamina.ports.mps.service_client import SOCKET


def mps(
    socket: MpsSocket = SOCKET,
    control: Annotated[
        str,
        typer.Option(
            "--mps-control", envvar="LAMINA_MPS_CONTROL", help="Path or name of NVIDIA's MPS control program."
        ),
    ] = "nvidia-cuda-mps-control",
    shm_mib: Annotated[
        int,
        typer.Option(
            "--shm-mib",
            envvar="LAMINA_MPS_SHM_MIB",
            min=0,
            help="Size of the tmpfs in MiB that the MPS clients of one GPU share as /dev/shm. "
            "With 0 they share a directory without a limit.",
        ),
    ] = 1024,
    multi_user: Annotated[
        bool,
        typer.Option(
            "--multi-user",
            envvar="LAMINA_MPS_MULTI_USER",
            help="Serve clients of all users at the same time. Otherwise those of another user wait until the others "
            "have ended.",
        ),
    ] = False,
    selinux_type: SelinuxType = "",
    log_level: LogLevel = "INFO",
) -> None:
    """Run the MPS service: starts, asks and ends MPS daemons for the agent of this node."""
    configure_logging(log_level)
    daemons = local_daemons(control, shm_mib, multi_user=multi_user, selinux_type=selinux_type)
    asyncio.run(run(Path.cwd() / socket, daemons))
