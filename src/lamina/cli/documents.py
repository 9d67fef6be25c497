"""Answers of commands as documents for scripts: JSON and YAML, with the same fields."""

import msgspec
import typer
import yaml


def print_document(value: object, form: str) -> None:
    """Print the value as `json` or `yaml`."""
    if form == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        typer.echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True), nl=False)
