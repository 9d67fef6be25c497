"""Options that services share, and how they log.

Each option has an environment variable, because a manifest sets those more easily. A message of the log may have what a
tenant wrote: a name in a manifest, the answer of a program. It stays one line of bounded length, so nothing in it can
look like another line of the log or act on a terminal.
"""

import logging
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.printable import printable
from lamina.errors import BadInput

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
        help="Path to the configuration file. Defaults to the ConfigMap lamina in Lamina's namespace.",
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
SelinuxType = Annotated[
    str,
    typer.Option(
        "--selinux-type",
        envvar="LAMINA_SELINUX_TYPE",
        help="SELinux type of folders with files for containers, such as container_file_t. Empty sets none.",
    ),
]
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def configure_logging(level: str) -> None:
    """Log to standard error from that level on. Raises BadInput for an unknown level."""
    if level.upper() not in _LEVELS:
        raise BadInput(f"--log-level must be one of {', '.join(_LEVELS)}, got {level!r}")
    log_to_stderr(level.upper())


MAX_MESSAGE = 4096
"""Characters of a message. The traceback of a defect, which follows its message, is not limited."""
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LineFormatter(logging.Formatter):
    """Formats each message as one line of printable characters. Others are escaped."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        message = record.message if len(record.message) <= MAX_MESSAGE else f"{record.message[:MAX_MESSAGE]}..."
        record.message = printable(message)
        return super().formatMessage(record)


def log_to_stderr(level: int | str) -> None:
    """Write the log of this process to standard error, from this level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])
