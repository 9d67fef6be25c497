"""The reference pages are what the code says, and the pages written by hand name everything of their kind."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from docs.generate import configuration, lab_file
from docs.generate.fields import fields
from docs.generate.reference import REFERENCE, pages
from docs.generate.values import Values
from lamina.cli.main import app
from lamina.configuration import DEFAULT
from lamina.core.nodes import KEPT_OUT
from lamina.dialects.choices import ChoiceAnnotations
from lamina.dialects.hami.parser import COUNTS_GPUS
from lamina.dialects.registry import name_index
from lamina.install.agent_values import GPU_NODES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGES = pages()
_CHOICES = name_index(DEFAULT).choice_annotations
_FIELDS = set(ChoiceAnnotations.__struct_fields__) - {"guarded_prefixes", "mode_values"}
ANNOTATIONS = sorted({COUNTS_GPUS} | {key for field in _FIELDS for key in getattr(_CHOICES, field)})


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text() if (REFERENCE / name).exists() else ""
    assert written == PAGES[name], "run `python -m docs.generate`"


def described(struct: Any) -> Iterator[tuple[str, str]]:
    for field in fields(struct):
        if field.inner is not None:
            yield from described(field.inner)
        else:
            yield f"{struct.__name__}.{field.name}", field.meaning


@pytest.mark.parametrize("struct", [*configuration.STRUCTS, *lab_file.STRUCTS, Values], ids=lambda each: each.__name__)
def test_every_key_has_a_meaning(struct: Any) -> None:
    assert [name for name, meaning in described(struct) if not meaning] == []


def parameters(command: Any, name: str = "lamina") -> Iterator[tuple[str, Any]]:
    """Every option and argument, with the command that has it."""
    for parameter in command.params:
        if parameter.name != "help" and not getattr(parameter, "hidden", False):
            yield f"{name} {parameter.name}", parameter
    for word, nested in getattr(command, "commands", {}).items():
        if not nested.hidden:
            yield from parameters(nested, f"{name} {word}")


def test_every_option_has_a_help_text() -> None:
    assert [name for name, parameter in parameters(get_command(app)) if not parameter.help] == []


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_every_annotation_is_explained(annotation: str) -> None:
    assert f"`{annotation}" in (REFERENCE / "requests.md").read_text()


def test_the_guides_name_the_labels_that_decide_which_nodes_have_agents() -> None:
    guides = "\n".join((ROOT / "docs/how-to" / name).read_text() for name in ("install.md", "coexist.md"))
    for key, value in (*GPU_NODES, *((key, values[0]) for key, values in KEPT_OUT)):
        assert f"{key}={value}" in guides


def test_the_index_names_every_example_and_no_other() -> None:
    there = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml")}
    assert set(re.findall(r"^\| `([^`]+\.yaml)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE)) == there
