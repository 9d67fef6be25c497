"""`lamina clean-node` and `lamina mount-files`: what runs on a node before its agent starts and after it is gone."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from lamina.agent.cleanup import leftovers
from lamina.agent.containers.file_mount import provide_mount, remove_mount
from lamina.agent.mps.lifecycle import end_daemons
from lamina.agent.state.settings import AgentSettings
from lamina.cli.exit_codes import ExitCode
from lamina.cli.service_options import LogLevel, SelinuxType, configure_logging
from lamina.cli.terminal import say
from lamina.errors import BadInput
from lamina.mps.local_daemons import local_daemons
from lamina.ports.clock import SystemClock
from lamina.ports.files import Files, in_use
from lamina.ports.mounts import LinuxMounts
from lamina.ports.mps.program import CONTROL
from lamina.ports.nvml import DriverNvml

_POLL_S = 1.0


def clean_node(
    kubelet_dir: Annotated[
        Path, typer.Option("--kubelet-dir", envvar="LAMINA_KUBELET_DIR", help="Directory of kubelet.")
    ],
    cdi_dir: Annotated[Path, typer.Option("--cdi-dir", envvar="LAMINA_CDI_DIR", help="Directory of CDI specs.")],
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="Directory of the agent on the host.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Only list what remains. Exits with 1 if anything does.")
    ] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Keep running until SIGTERM, as a DaemonSet needs it.")] = False,
) -> None:
    """Remove MPS daemons, CDI specs, sockets and state that an agent left on this node. No agent and no pod with GPUs
    may be running."""
    while True:
        if not check and in_use(state_dir):
            if not stay:
                raise BadInput(f"an agent is using {state_dir}; stop it first")
            time.sleep(_POLL_S)
            continue
        remaining = leftovers.find_leftovers(kubelet_dir=kubelet_dir, cdi_dir=cdi_dir, state_dir=state_dir)
        if check:
            for path in remaining:
                say(str(path))
            raise typer.Exit(ExitCode.NO if remaining else ExitCode.DONE)
        if remaining:
            for failure in asyncio.run(_end_daemons(state_dir)):
                say(failure, err=True)
            asyncio.run(_unmount(state_dir))
        for path in remaining:
            say(f"Removing {path}")
        leftovers.remove_leftovers(remaining)
        if not stay:
            return
        time.sleep(_POLL_S)


async def _unmount(state_dir: Path) -> None:
    """Remove the mount of the files that containers wrote. Raises Outside."""
    await remove_mount(AgentSettings(node="", state_dir=state_dir.resolve()).containers, LinuxMounts())


async def _end_daemons(state_dir: Path) -> list[str]:
    """End the MPS daemons of the agent that used this directory. Returns a sentence for each failure."""
    settings, nvml = AgentSettings(node="", state_dir=state_dir), DriverNvml()
    try:
        return await end_daemons(settings.mps, local_daemons(CONTROL, 0), nvml, Files(), SystemClock())
    finally:
        await nvml.close()


MAX_MIB = 65536


def mount_files(
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="Directory of the agent on the host.")
    ],
    size_mib: Annotated[
        int,
        typer.Option("--size-mib", envvar="LAMINA_FILES_MIB", min=1, max=MAX_MIB, help="Size of the tmpfs in MiB."),
    ] = 64,
    selinux_type: SelinuxType = "",
    log_level: LogLevel = "INFO",
) -> None:
    """Mount a tmpfs for the files that containers of this node write, before its agent starts. One that is mounted
    stays."""
    configure_logging(log_level)
    folder = AgentSettings(node="", state_dir=Path.cwd() / state_dir).containers
    asyncio.run(provide_mount(folder, size_mib, LinuxMounts(), Files(selinux_type)))
