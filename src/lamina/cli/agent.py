"""`lamina agent`: the component that runs on each node with GPUs."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from lamina.agent.run import run
from lamina.agent.state.settings import AgentSettings
from lamina.cli.options import component_namespace
from lamina.cli.service_options import (
    Config,
    Kubeconfig,
    LogLevel,
    MpsSocket,
    ProtectMetrics,
    SelinuxType,
    configure_logging,
)
from lamina.dra.names import DRIVER
from lamina.ports.listener import parse_address
from lamina.ports.mps.service_client import SOCKET

DriverMount = Annotated[
    Path | None,
    typer.Option(
        "--driver-mount",
        envvar="LAMINA_DRIVER_MOUNT",
        help="Path of --driver-dir in the container of the agent, if it is another one.",
    ),
]
Dra = Annotated[
    bool,
    typer.Option("--dra", envvar="LAMINA_DRA", help="Serve ResourceClaims, as a driver for them."),
]
DraDriver = Annotated[
    str,
    typer.Option("--dra-driver", envvar="LAMINA_DRA_DRIVER", help="Name of the driver that serves ResourceClaims."),
]
DraBinding = Annotated[
    bool,
    typer.Option(
        "--dra-binding-conditions",
        envvar="LAMINA_DRA_BINDING_CONDITIONS",
        help="Prepare ResourceClaims before their pods are bound, so that the scheduler tries another node on failure.",
    ),
]
NvidiaNamespace = Annotated[
    str,
    typer.Option(
        "--nvidia-namespace",
        envvar="LAMINA_NVIDIA_NAMESPACE",
        help="Namespace of NVIDIA's named configurations. Defaults to the one in Lamina's configuration.",
    ),
]
MpsRoot = Annotated[
    Path | None,
    typer.Option(
        "--mps-root",
        envvar="LAMINA_MPS_ROOT",
        help="Directory of the MPS pipe directories on the host. Defaults to the one in NVIDIA's configuration.",
    ),
]


def agent(
    node: Annotated[str, typer.Option("--node", envvar="NODE_NAME", help="Name of this node in Kubernetes.")],
    kubeconfig: Kubeconfig = None,
    config: Config = None,
    kubelet_dir: Annotated[
        Path, typer.Option("--kubelet-dir", envvar="LAMINA_KUBELET_DIR", help="Directory of kubelet.")
    ] = Path("/var/lib/kubelet"),
    cdi_dir: Annotated[
        Path,
        typer.Option(
            "--cdi-dir", envvar="LAMINA_CDI_DIR", help="Directory in which the container runtime reads CDI specs."
        ),
    ] = Path("/var/run/cdi"),
    state_dir: Annotated[
        Path, typer.Option("--state-dir", envvar="LAMINA_STATE_DIR", help="Directory of the agent on the host.")
    ] = Path("/var/lib/lamina"),
    driver_dir: Annotated[
        Path, typer.Option("--driver-dir", envvar="LAMINA_DRIVER_DIR", help="Directory of the driver's libraries.")
    ] = Path("/usr/lib/x86_64-linux-gnu"),
    driver_mount: DriverMount = None,
    nvidia_namespace: NvidiaNamespace = "",
    mps_socket: MpsSocket = SOCKET,
    mps_root: MpsRoot = None,
    metrics_bind: Annotated[
        str,
        typer.Option(
            "--metrics-bind", envvar="LAMINA_METRICS_BIND", help="Address that serves metrics. Empty disables them."
        ),
    ] = ":9394",
    protect_metrics: ProtectMetrics = False,
    dra: Dra = False,
    dra_driver: DraDriver = DRIVER,
    dra_binding: DraBinding = False,
    selinux_type: SelinuxType = "",
    log_level: LogLevel = "INFO",
) -> None:
    """Run the node agent: device plugin and limit enforcement."""
    configure_logging(log_level)
    settings = AgentSettings(
        node=node,
        kubeconfig=kubeconfig,
        namespace=component_namespace(),
        config=config,
        kubelet_dir=kubelet_dir,
        cdi_dir=cdi_dir,
        state_dir=state_dir,
        driver_dir=driver_dir,
        driver_mount=driver_mount,
        nvidia_namespace=nvidia_namespace,
        mps_socket=mps_socket,
        mps_root=mps_root,
        metrics=parse_address(metrics_bind, where="--metrics-bind") if metrics_bind else None,
        protect_metrics=protect_metrics,
        dra=dra,
        dra_driver=dra_driver,
        dra_binding=dra_binding,
        selinux_type=selinux_type,
    )
    asyncio.run(run(settings))
