"""The lab's commands: `lamina demo`, `lamina lab` and `lamina lab fault`.

The command line of Lamina finds them by an entry point of the group `lamina.commands`.
"""

from collections.abc import Iterator

import typer

from lamina.cli import running_clusters
from lamina_lab.cli import demo, lab


def register(app: typer.Typer) -> None:
    """Add the lab's commands to the command line."""
    app.add_typer(lab.app, name="lab")
    app.command("demo")(demo.demo)
    running_clusters.add(_running)


def _running() -> Iterator[tuple[str, str]]:
    from lamina_lab.cluster.survey import survey

    return ((f"lab {lab.name}", lab.kubeconfig) for lab in survey() if lab.state == "ready")
