"""All generated pages of docs/reference, by file name."""

from pathlib import Path

from docs.generate import commands, configuration, lab_file, messages, metrics, refusals, rights, values

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def pages() -> dict[str, str]:
    made = (commands, configuration, values, metrics, rights, messages, refusals, lab_file)
    return {name: text for module in made for name, text in module.pages()}
