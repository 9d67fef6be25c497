"""The one console: what a person reads goes through it, so that tables and progress agree on width and colour."""

from rich.console import Console

console = Console(highlight=False)
