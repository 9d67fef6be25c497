"""`lamina admission`: the webhook that reviews pods, next to each replica of the controller."""

import asyncio
import gc
from pathlib import Path
from typing import Annotated

import typer

from lamina.admission.run import run
from lamina.admission.settings import AdmissionSettings
from lamina.cli.options import component_namespace
from lamina.cli.service_options import Config, Kubeconfig, LogLevel, ProtectMetrics, configure_logging
from lamina.ports.listener import parse_address


def admission(
    kubeconfig: Kubeconfig = None,
    config: Config = None,
    bind: Annotated[
        str, typer.Option("--bind", envvar="LAMINA_ADMISSION_BIND", help="Address of the admission webhook.")
    ] = ":8443",
    host: Annotated[
        str,
        typer.Option(
            "--host",
            envvar="LAMINA_ADMISSION_HOST",
            help="Host name under which the API server reaches it. Defaults to the Service lamina-admission.",
        ),
    ] = "",
    metrics_bind: Annotated[
        str,
        typer.Option("--metrics-bind", envvar="LAMINA_METRICS_BIND", help="Address of probes and metrics."),
    ] = "",
    protect_metrics: ProtectMetrics = False,
    addresses_file: Annotated[
        Path | None,
        typer.Option("--addresses-file", help="Write the addresses to this file once it listens."),
    ] = None,
    log_level: LogLevel = "INFO",
) -> None:
    """Run admission: the webhook that checks and completes the requests of new pods."""
    configure_logging(log_level)
    settings = AdmissionSettings(
        kubeconfig=kubeconfig,
        namespace=component_namespace(),
        config=config,
        bind=parse_address(bind, where="--bind"),
        host=host,
        metrics=parse_address(metrics_bind, where="--metrics-bind") if metrics_bind else None,
        protect_metrics=protect_metrics,
        addresses_file=addresses_file,
    )
    gc.freeze()
    asyncio.run(run(settings))
