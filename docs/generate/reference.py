"""All generated pages of docs/reference and all man pages, by file name."""

from pathlib import Path

from docs.generate import (
    commands,
    compatibility,
    configuration,
    lab_file,
    man,
    messages,
    metrics,
    refusals,
    rights,
    values,
)

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
MAN = Path(__file__).resolve().parents[2] / "man"
"""Of the commands; the wheel installs this folder as share/man/man1."""


def pages() -> dict[str, str]:
    made = (commands, configuration, values, metrics, rights, messages, refusals, lab_file, compatibility)
    return {name: text for module in made for name, text in module.pages()}


def man_pages() -> dict[str, str]:
    return dict(man.pages())
