"""Options that the agent and the controller share, and their logging.

Each option has an environment variable, because a manifest sets those more easily.
"""

from pathlib import Path
from typing import Annotated

import typer

from lamina.errors import BadInput
from lamina.ports.log_format import log_to_stderr

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", envvar="KUBECONFIG", help="Path to the kubeconfig file. Defaults to the pod's service account."
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="LAMINA_CONFIG",
        help="Path to the configuration file. Defaults to the ConfigMap lamina-system/lamina.",
    ),
]
ProtectMetrics = Annotated[
    bool,
    typer.Option(
        "--protect-metrics",
        envvar="LAMINA_PROTECT_METRICS",
        help="Serve metrics over HTTPS, and only to callers that the API server allows to get /metrics.",
    ),
]
LogLevel = Annotated[
    str, typer.Option("--log-level", envvar="LAMINA_LOG_LEVEL", help="Log level: DEBUG, INFO, WARNING or ERROR.")
]
MpsSocket = Annotated[
    Path, typer.Option("--mps-socket", envvar="LAMINA_MPS_SOCKET", help="Socket of the MPS service of the node.")
]
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def configure_logging(level: str) -> None:
    """Log to standard error from that level on. Raises BadInput for an unknown level."""
    if level.upper() not in _LEVELS:
        raise BadInput(f"--log-level must be one of {', '.join(_LEVELS)}, got {level!r}")
    log_to_stderr(level.upper())
