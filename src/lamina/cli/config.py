"""`lamina config`: configurations as files, and the one in force in a cluster."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from lamina import configuration
from lamina.cli.connection import ClusterChoice, cluster_command, with_installation
from lamina.cli.exit_codes import ExitCode
from lamina.cli.terminal import say
from lamina.config_source.live import text_in_force
from lamina.configuration.config_map import TextInForce, config_map_name, text_hash
from lamina.configuration.importers.published import convert as convert_file
from lamina.configuration.text import to_yaml
from lamina.ports.kube import Kube
from lamina.ports.user_files import read_text

config = typer.Typer(
    name="config", help="Work with configuration files and the configuration in force.", no_args_is_help=True
)


@config.callback()
def _group() -> None:
    """Work with configuration files and the configuration in force."""


@config.command("convert")
def convert(
    file: Annotated[
        Path,
        typer.Argument(
            help="A configuration, or a file of another system: of NVIDIA's device plugin, of Volcano's scheduler or "
            "device plugin, of HAMi, or the values of their charts. ConfigMaps with them are read too."
        ),
    ],
) -> None:
    """Print a configuration in Lamina's own form, lamina.dev/v1alpha1.

    Comments at its top name what has no place in it, and what takes its place.
    """
    found = convert_file(read_text(file), str(file))
    for note in found.notes:
        say(f"# {note}")
    say(to_yaml(found.config), end="")


@config.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="A configuration, or a file of another system as for `convert`.")],
) -> None:
    """Check a configuration without a cluster. Exits with 2, and says what is wrong, if Lamina would refuse it.

    Of a file of another system, it says what the file would do.
    """
    text = read_text(file)
    found = convert_file(text, str(file))
    if not found.titles:
        say(f"{file} is valid, SHA-256 {text_hash(text)}.")
        return
    say(f"{file} is valid: {', '.join(found.titles)}. `lamina config convert` makes a configuration of it:")
    for note in found.notes:
        say(f"  {note}")
    say("".join(f"  {line}\n" for line in to_yaml(found.config).splitlines()), end="")


@config.command("show")
@cluster_command
def show(choice: ClusterChoice) -> None:
    """Print the configuration in force in Lamina's own form: since when, its hash, and why another text is refused."""
    where, found = _in_force(choice)
    say(f"# {where}, SHA-256 {text_hash(found.text)}")
    since = (
        f"In force since {found.since}." if found.since else "The controller has not recorded since when it is used."
    )
    say(f"# {since}")
    if found.refusal:
        say(f"# The text in the ConfigMap is refused: {found.refusal}")
    say(_own_form(found.text, where), end="")


@config.command("diff")
@cluster_command
def diff(
    choice: ClusterChoice,
    file: Annotated[Path, typer.Argument(help="A configuration in any form that Lamina reads.")],
) -> None:
    """Compare a configuration with the one in force, both in Lamina's own form.

    Exits with 0 if they mean the same, 1 if they differ, and 2 if Lamina would refuse the file.
    """
    new = _own_form(read_text(file), str(file))
    where, found = _in_force(choice)
    if found.refusal:
        say(f"Warning: the previous configuration is in force: {found.refusal}", err=True)
    lines = list(
        difflib.unified_diff(
            _own_form(found.text, where).splitlines(), new.splitlines(), f"{where} in force", str(file), lineterm=""
        )
    )
    for line in lines:
        say(line)
    if lines:
        raise typer.Exit(ExitCode.NO)
    say(f"{file} means the same as the configuration in force.")


def _own_form(text: str, where: str) -> str:
    """The configuration in Lamina's own form. Raises BadInput as the controller refuses it."""
    return to_yaml(configuration.load(text, where))


def _in_force(choice: ClusterChoice) -> tuple[str, TextInForce]:
    """The name of the ConfigMap, and the configuration in force."""

    async def read(kube: Kube) -> tuple[str, TextInForce]:
        return config_map_name(kube.lamina_namespace), await text_in_force(kube)

    return with_installation(choice, read)
