"""`lamina controller`: the component that runs once per cluster, in one or more replicas."""

from pathlib import Path
from typing import Annotated

import typer
import uvloop

from lamina.cli.options import component_namespace
from lamina.cli.service_options import Config, Kubeconfig, LogLevel, ProtectMetrics, configure_logging
from lamina.controller.run import run
from lamina.controller.settings import ControllerSettings
from lamina.dra.names import DRIVER
from lamina.ports.listener import parse_address

ExtenderBind = Annotated[
    str,
    typer.Option(
        "--extender-bind",
        envvar="LAMINA_EXTENDER_BIND",
        help="Address of the scheduler extender, which serves HTTPS to clients with a certificate.",
    ),
]
ExtenderTls = Annotated[
    Path | None,
    typer.Option(
        "--extender-tls",
        envvar="LAMINA_EXTENDER_TLS",
        help="Directory with the extender's certificate in tls.crt and tls.key, and the authority of its clients in "
        "ca.crt. Defaults to certificates that Lamina creates.",
    ),
]
ExtenderHttpBind = Annotated[
    str,
    typer.Option(
        "--extender-http-bind",
        envvar="LAMINA_EXTENDER_HTTP_BIND",
        help="Additional address that serves the extender over plain HTTP, to any client that reaches it.",
    ),
]

DraOption = Annotated[
    bool,
    typer.Option(
        "--dra",
        envvar="LAMINA_DRA",
        help="Make the DeviceClasses and ResourceClaimTemplates that claims need. For agents with --dra.",
    ),
]
DraDriverOption = Annotated[
    str, typer.Option("--dra-driver", envvar="LAMINA_DRA_DRIVER", help="Name of the agents' driver for claims.")
]
PreemptionOption = Annotated[
    bool,
    typer.Option(
        "--preemption",
        envvar="LAMINA_PREEMPTION",
        help="Evict pods of lower priority for a pod that lacks GPU memory or compute alone, for kube-scheduler up to "
        "1.36.",
    ),
]


def controller(
    kubeconfig: Kubeconfig = None,
    config: Config = None,
    extender_bind: ExtenderBind = "127.0.0.1:8445",
    extender_tls: ExtenderTls = None,
    extender_http_bind: ExtenderHttpBind = "",
    admission: Annotated[
        str,
        typer.Option(
            "--admission",
            envvar="LAMINA_ADMISSION",
            help="Address at which the API server reaches admission. Defaults to the Service lamina-admission.",
        ),
    ] = "",
    metrics_bind: Annotated[
        str,
        typer.Option(
            "--metrics-bind", envvar="LAMINA_METRICS_BIND", help="Additional address that serves probes and metrics."
        ),
    ] = "",
    protect_metrics: ProtectMetrics = False,
    preemption: PreemptionOption = False,
    dra: DraOption = False,
    dra_driver: DraDriverOption = DRIVER,
    addresses_file: Annotated[
        Path | None,
        typer.Option("--addresses-file", help="Write the addresses to this file once both services listen."),
    ] = None,
    identity: Annotated[
        str,
        typer.Option(
            "--identity",
            envvar="LAMINA_IDENTITY",
            help="Identity of this replica in the leader election. Defaults to the host name.",
        ),
    ] = "",
    log_level: LogLevel = "INFO",
) -> None:
    """Run the controller: scheduler extender, grants and the registration of admission."""
    configure_logging(log_level)
    settings = ControllerSettings(
        kubeconfig=kubeconfig,
        namespace=component_namespace(),
        config=config,
        extender_tls=extender_tls,
        extender=parse_address(extender_bind, where="--extender-bind"),
        extender_http=parse_address(extender_http_bind, where="--extender-http-bind") if extender_http_bind else None,
        admission=parse_address(admission, where="--admission") if admission else None,
        metrics=parse_address(metrics_bind, where="--metrics-bind") if metrics_bind else None,
        protect_metrics=protect_metrics,
        preemption=preemption,
        dra=dra,
        dra_driver=dra_driver,
        addresses_file=addresses_file,
        identity=identity,
    )
    uvloop.run(run(settings))
