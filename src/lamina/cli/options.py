"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lamina.errors import BadInput

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Path to the kubeconfig file. Defaults to the one that kubectl uses."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print the cluster and what would happen.")]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace to look in. Defaults to that of the kubeconfig's context.",
        show_default=False,
    ),
]


def one_of(value: str, allowed: Sequence[str], option: str) -> None:
    """Raises BadInput for a value that the option does not take."""
    if value not in allowed:
        raise BadInput(f"{option} must be one of {', '.join(allowed)}, got {value!r}")
