"""`lamina config`: configurations as files."""

from pathlib import Path
from typing import Annotated

import typer

from lamina.ports.user_files import read_text

config = typer.Typer(name="config", help="Work with configuration files.", no_args_is_help=True)


@config.callback()
def _group() -> None:
    """Work with configuration files."""


@config.command("convert")
def convert(
    file: Annotated[
        Path, typer.Argument(help="A configuration with HAMi's keys, Volcano's, or the values of 4paradigm's chart.")
    ],
) -> None:
    """Print a configuration in Lamina's own form, lamina.dev/v1alpha1."""
    from lamina import configuration
    from lamina.configuration.writer import to_yaml

    text = read_text(file)
    configuration.load(text, str(file))
    typer.echo(to_yaml(configuration.read(text, str(file))), nl=False)
