"""`lamina mount-files`: give the files that containers write a file system of their own."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.agent.containers.file_mount import provide_mount
from lamina.agent.state.settings import AgentSettings
from lamina.cli.service_options import LogLevel, configure_logging
from lamina.ports.files import Files
from lamina.ports.mounts import LinuxMounts

MAX_MIB = 65536


def mount_files(
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="Directory of the agent on the host.")
    ],
    size_mib: Annotated[
        int,
        typer.Option("--size-mib", envvar="LAMINA_FILES_MIB", min=1, max=MAX_MIB, help="Size of the tmpfs in MiB."),
    ] = 64,
    log_level: LogLevel = "INFO",
) -> None:
    """Mount a tmpfs for the files that containers of this node write, before its agent starts. One that is mounted
    stays."""
    configure_logging(log_level)
    folder = AgentSettings(node="", state_dir=Path.cwd() / state_dir).containers
    asyncio.run(provide_mount(folder, size_mib, LinuxMounts(), Files()))
