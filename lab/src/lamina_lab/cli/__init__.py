"""The lab's commands: `lamina demo`, `lamina lab` and `lamina lab fault`.

The command line of Lamina finds them by an entry point of the group `lamina.commands`.
"""

import typer

from lamina_lab.cli import demo, lab


def register(app: typer.Typer) -> None:
    """Add the lab's commands to the command line."""
    app.add_typer(lab.app, name="lab")
    app.command("demo")(demo.demo)
