"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

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
