"""`lamina agent` and `lamina control`: the two parts that run in a cluster, one per node and one per cluster.

Every option has an environment variable beside it, because a manifest sets those more easily.
"""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from lamina.errors import BadInput

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", envvar="KUBECONFIG", help="Where the cluster is; in a pod, the pod's own account."),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="LAMINA_CONFIG",
        help="Lamina's configuration file; without it, the ConfigMap lamina-system/lamina.",
    ),
]
NvidiaNamespace = Annotated[
    str,
    typer.Option(
        "--nvidia-namespace",
        envvar="LAMINA_NVIDIA_NAMESPACE",
        help="The namespace of NVIDIA's named configurations; without it, as Lamina's configuration says.",
    ),
]
LogLevel = Annotated[
    str,
    typer.Option("--log-level", envvar="LAMINA_LOG_LEVEL", help="DEBUG, INFO, WARNING or ERROR."),
]


def agent(
    node: Annotated[str, typer.Option("--node", envvar="NODE_NAME", help="The node's name in Kubernetes.")],
    kubeconfig: Kubeconfig = None,
    config: Config = None,
    kubelet_dir: Annotated[
        Path, typer.Option("--kubelet-dir", envvar="LAMINA_KUBELET_DIR", help="Kubelet's folder.")
    ] = Path("/var/lib/kubelet"),
    cdi_dir: Annotated[
        Path, typer.Option("--cdi-dir", envvar="LAMINA_CDI_DIR", help="Where the container runtime reads CDI specs.")
    ] = Path("/var/run/cdi"),
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="The agent's own folder on the host.")
    ] = Path("/var/lib/lamina"),
    driver_dir: Annotated[
        Path, typer.Option("--driver-dir", envvar="LAMINA_DRIVER_DIR", help="Where the driver's libraries are.")
    ] = Path("/usr/lib/x86_64-linux-gnu"),
    driver_seen_at: Annotated[
        Path | None,
        typer.Option(
            "--driver-seen-at",
            envvar="LAMINA_DRIVER_SEEN_AT",
            help="Where the agent itself finds --driver-dir, if that is mounted elsewhere for it.",
        ),
    ] = None,
    nvidia_namespace: NvidiaNamespace = "",
    mps_control: Annotated[
        str,
        typer.Option("--mps-control", envvar="LAMINA_MPS_CONTROL", help="NVIDIA's program for MPS, by path or name."),
    ] = "nvidia-cuda-mps-control",
    mps_root: Annotated[
        Path | None,
        typer.Option(
            "--mps-root",
            envvar="LAMINA_MPS_ROOT",
            help="Where the pipe directories of MPS are on the host; without it, as NVIDIA's configuration says.",
        ),
    ] = None,
    mps_shm: Annotated[
        Path,
        typer.Option("--mps-shm", envvar="LAMINA_MPS_SHM", help="The host's folder that the agent has as /dev/shm."),
    ] = Path("/dev/shm"),
    metrics_bind: Annotated[
        str,
        typer.Option("--metrics-bind", envvar="LAMINA_METRICS_BIND", help="Where metrics are served; empty: nowhere."),
    ] = ":9394",
    log_level: LogLevel = "INFO",
) -> None:
    """Be the agent of a node: offer its GPUs, and hold each container to its grant."""
    from lamina.agent.run import run
    from lamina.agent.settings import AgentSettings
    from lamina.ports.listening import parse_address

    _log(log_level)
    settings = AgentSettings(
        node=node,
        kubeconfig=kubeconfig,
        config=config,
        kubelet_dir=kubelet_dir,
        cdi_dir=cdi_dir,
        state_dir=state_dir,
        driver_dir=driver_dir,
        driver_seen_at=driver_seen_at,
        nvidia_namespace=nvidia_namespace,
        mps_control=mps_control,
        mps_root=mps_root,
        mps_shm=mps_shm,
        metrics=parse_address(metrics_bind, where="--metrics-bind") if metrics_bind else None,
    )
    asyncio.run(run(settings))


def clean_node(
    kubelet_dir: Annotated[Path, typer.Option("--kubelet-dir", envvar="LAMINA_KUBELET_DIR", help="Kubelet's folder.")],
    cdi_dir: Annotated[Path, typer.Option("--cdi-dir", envvar="LAMINA_CDI_DIR", help="The folder of CDI specs.")],
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="The agent's own folder on the host.")
    ],
    check: Annotated[bool, typer.Option("--check", help="Only say what is left; exit 1 if anything is.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Go on until SIGTERM, as pods do.")] = False,
) -> None:
    """Remove what an agent left on this node: MPS, CDI specs, sockets, its folder. No agent may run, nor a pod with
    GPUs."""
    import time

    from lamina.agent import cleaning
    from lamina.ports.files import in_use

    while True:
        if not check and in_use(state_dir):
            if not stay:
                raise BadInput(f"an agent has {state_dir} in use; end it first")
            time.sleep(1.0)
            continue
        there = cleaning.left(kubelet_dir=kubelet_dir, cdi_dir=cdi_dir, state_dir=state_dir)
        if check:
            for path in there:
                typer.echo(path)
            raise typer.Exit(1 if there else 0)
        if there:
            for sentence in asyncio.run(_end_daemons(state_dir)):
                typer.echo(sentence, err=True)
        for path in there:
            typer.echo(f"Removing {path}")
        cleaning.remove(there)
        if not stay:
            return
        time.sleep(1.0)


async def _end_daemons(state_dir: Path) -> list[str]:
    """End the MPS daemons of the agent that had this folder; what could not be undone, in sentences."""
    from lamina.agent.mps.leaving import end_daemons
    from lamina.agent.settings import AgentSettings
    from lamina.ports.files import Files
    from lamina.ports.mps import ControlProgram
    from lamina.ports.nvml import DriverNvml

    settings, nvml = AgentSettings(node="", state_dir=state_dir), DriverNvml()
    try:
        return await end_daemons(settings.mps, ControlProgram(settings.mps_control), nvml, Files())
    finally:
        await nvml.close()


def control(
    kubeconfig: Kubeconfig = None,
    config: Config = None,
    extender_bind: Annotated[
        str, typer.Option("--extender-bind", envvar="LAMINA_EXTENDER_BIND", help="Where the extender listens.")
    ] = "127.0.0.1:8080",
    admission_bind: Annotated[
        str, typer.Option("--admission-bind", envvar="LAMINA_ADMISSION_BIND", help="Where admission listens.")
    ] = ":8443",
    admission_host: Annotated[
        str,
        typer.Option("--admission-host", envvar="LAMINA_ADMISSION_HOST", help="How the API server reaches admission."),
    ] = "",
    metrics_bind: Annotated[
        str,
        typer.Option(
            "--metrics-bind", envvar="LAMINA_METRICS_BIND", help="Where probes and metrics are served as well."
        ),
    ] = "",
    addresses_file: Annotated[
        Path | None, typer.Option("--addresses-file", help="Write the addresses here once both services listen.")
    ] = None,
    identity: Annotated[
        str,
        typer.Option("--identity", envvar="LAMINA_IDENTITY", help="Tells replicas apart; without it, the host's name."),
    ] = "",
    log_level: LogLevel = "INFO",
) -> None:
    """Be the control part of a cluster: check pods at admission, and place them as the scheduler's extender."""
    from lamina.control.run import run
    from lamina.control.settings import ControlSettings
    from lamina.ports.listening import parse_address

    _log(log_level)
    settings = ControlSettings(
        kubeconfig=kubeconfig,
        config=config,
        extender=parse_address(extender_bind, where="--extender-bind"),
        admission=parse_address(admission_bind, where="--admission-bind"),
        admission_host=admission_host,
        metrics=parse_address(metrics_bind, where="--metrics-bind") if metrics_bind else None,
        addresses_file=addresses_file,
        identity=identity,
    )
    asyncio.run(run(settings))


def _log(level: str) -> None:
    levels = {"DEBUG", "INFO", "WARNING", "ERROR"}
    if level.upper() not in levels:
        raise BadInput(f"--log-level is {level!r}; allowed are {', '.join(sorted(levels))}")
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
