"""`lamina --help`: commands grouped by who uses them. Ctrl-C ends each of them with one sentence."""

from collections.abc import Iterator
from typing import Any

import typer.core

from lamina.cli.exit_codes import Interrupted

LAB = "Lab (lamina-lab)"
GROUPS = {
    "On one machine": ("run", "verify", "simulate", "completion"),
    "For users of a cluster": (*("gpus", "top", "pods", "why", "fits", "dashboard", "quotas", "resize"),),
    "Cost and advice": ("cost", "advise"),
    "For administrators of a cluster": (
        *("install", "scheduler-config", "config", "doctor", "mig", "cordon", "uncordon", "defrag"),
        *("reset", "uninstall"),
    ),
    LAB: ("demo", "lab"),
    "Components, started by manifests": ("agent", "controller", "admission", "mps", "mount-files", "clean-node"),
}
"""The groups in the order of the help, with their commands."""
_ONE_SENTENCE = 1000
"""More characters than the first sentence of a help text has, so that none is cut."""


class GroupedCommands(typer.core.TyperGroup):
    """A group that lists its commands under the headings of `GROUPS`, and all others under `Other`."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            raise Interrupted(f"{ctx.invoked_subcommand} was interrupted before it was done") from stopped

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # click's own types, or a copy of them within typer
        for heading, commands in self._sections(ctx):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, command.get_short_help_str(limit=_ONE_SENTENCE)) for name, command in commands]
                )

    def _sections(self, ctx: Any) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        visible = {
            name: command
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        }
        for heading, names in GROUPS.items():
            commands = [(name, visible.pop(name)) for name in names if name in visible]
            if commands:
                yield heading, commands
        if visible:
            yield "Other", list(visible.items())
