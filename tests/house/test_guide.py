"""The guide names every configuration key, annotation and option, and the examples' index every example."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.main import get_command

from lamina.cli.main import app
from lamina.dialects import annotations, chart, sections
from lamina.dialects.config import Config
from lamina.lab.plan import NodePlan, Plan
from lamina.model.cards import CARDS
from lamina.simgpu import GpuSpec

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide.md").read_text()
EXAMPLES = ROOT / "examples"
STRUCTS: tuple[Any, ...] = (
    *(sections.Hami, sections.NodeConfig, sections.FilterDevices, sections.NodeMarks, sections.Health, Config),
    *(chart.DevicePlugin, chart.Scheduler),
    *(Plan, NodePlan, GpuSpec),
)
KEYS = sorted({field.encode_name for struct in STRUCTS for field in msgspec.structs.fields(struct)})
TOP_LEVEL = [key for key in chart._TO_HAMI if "." not in key]
ANNOTATIONS = [
    value
    for name, value in vars(annotations).items()
    if name.isupper() and isinstance(value, str) and "/" in value
]  # fmt: skip


def options(command: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every option, with the command that has it, such as `lab up`."""
    for parameter in command.params:
        yield from ((name, spelled) for spelled in parameter.opts if spelled.startswith("-"))
    for word, nested in getattr(command, "commands", {}).items():
        if not nested.hidden:
            yield from options(nested, f"{name} {word}".strip())


@pytest.mark.parametrize("key", [*KEYS, *TOP_LEVEL])
def test_every_key_of_a_file_is_explained(key: str) -> None:
    assert re.search(rf"[`.]{key}(\[\])?[`.]", GUIDE), f"docs/guide.md does not name the key {key}"


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_every_annotation_is_explained(annotation: str) -> None:
    assert f"`{annotation}" in GUIDE


@pytest.mark.parametrize(("command", "option"), list(options(get_command(app))))
def test_every_option_is_explained_for_its_command(command: str, option: str) -> None:
    wanted = {f"`{option}`", f"`{command}`"} if command else {f"lamina {option}"}
    assert any(all(word in line for word in wanted) for line in GUIDE.splitlines())


@pytest.mark.parametrize("model", sorted({card.key for card in CARDS.values()}))
def test_every_card_is_listed(model: str) -> None:
    assert model in GUIDE


def test_the_index_names_every_example_and_no_other() -> None:
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml")}
    assert set(re.findall(r"^\| `([^`]+\.yaml)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE)) == there
