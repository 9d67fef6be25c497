"""The table of dialects and modes says what the code accepts, and each yes is a manifest that runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.agent.kubelet.plugins import advertised_kinds
from lamina.agent.state.observed import AppliedConfig
from lamina.configuration import DEFAULT, nvidia
from lamina.core.gpus import Mode
from lamina.dialects import parse
from lamina.dialects.native_devices import native_resources
from lamina.dialects.registry import DIALECTS, name_index
from lamina.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = "\n".join(path.read_text() for path in (ROOT / "tests" / "scenarios").glob("*.py"))
PAGE = ROOT / "docs" / "reference" / "modes.md"
_LINES = PAGE.read_text().partition("| dialect ")[2].partition("\n\n")[0]
HEAD, _, *_ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in _LINES.splitlines()]
COLUMNS = HEAD
TABLE = {re.split(r"\W", row[0])[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in _ROWS}
LINKS = [
    (words, column, link[1] == "yes", (PAGE.parent / link[2]).resolve())
    for words, row in TABLE.items()
    for column, cell in row.items()
    if (link := re.fullmatch(r"\[(yes|in parts)\]\((.+)\)", cell))
]
BY_ANNOTATION = {"hami-core": "quota", "mps": "mps", "mig": "mig on demand"}


def pods(manifest: Path) -> Iterator[dict[str, Any]]:
    """The pods of a manifest, and those of its templates."""
    for document in yaml.safe_load_all(manifest.read_text()):
        spec = document.get("spec") or {}
        if "containers" in (found := spec.get("template", document)).get("spec", {}):
            yield found


def mode_by(manifest: Path) -> Mode:
    """How a node shares GPUs by the one file `version: v1` in the ConfigMap of a manifest."""
    (data,) = [each["data"] for each in yaml.safe_load_all(manifest.read_text()) if each["kind"] == "ConfigMap"]
    ((name, text),) = data.items()
    return advertised_kinds(DEFAULT, AppliedConfig(name=name, config=nvidia.load(text, name))).mode


def test_every_dialect_and_every_mode_is_in_the_table() -> None:
    requested = {one.name for one in DIALECTS if one.resource_names(DEFAULT).all or one.annotation_prefixes}
    assert set(TABLE) == requested
    assert {column.partition(" ")[0] for column in COLUMNS} == set(Mode)
    cells = [cell for row in TABLE.values() for cell in row.values()]
    assert len(LINKS) + cells.count("–") + cells.count("all of a quota") == len(cells)


@pytest.mark.parametrize(
    ("words", "column", "runs", "manifest"), LINKS, ids=lambda each: getattr(each, "stem", str(each))
)
def test_a_link_is_a_manifest_that_asks_for_just_that_and_a_yes_is_run(
    words: str, column: str, runs: bool, manifest: Path
) -> None:
    assert not runs or re.search(rf'["/]{manifest.stem}(\.yaml)?"', SCENARIOS), f"no scenario applies {manifest}"
    if column in ("timeslice", "mps") and words == "nvidia":
        assert mode_by(manifest) == column
        return
    if words == "nvidia":
        asked = {
            name for pod in pods(manifest) for each in pod["spec"]["containers"] for name in each["resources"]["limits"]
        }
        assert asked and asked == set(native_resources(asked))
        assert any("mig-" in name for name in asked) == column.startswith("mig")
        return
    requests = [request for pod in pods(manifest) if (request := parse(pod, DEFAULT)) and request.dialect == words]
    assert requests, f"{manifest} has no pod in the words of {words}"
    if column == "mps":
        assert all(Mode.MPS in request.selector.modes for request in requests)
    if column in ("whole", "quota"):
        assert {each.whole for request in requests for each in request.containers} == {column == "whole"}


@pytest.mark.parametrize("word", BY_ANNOTATION)
@pytest.mark.parametrize(
    ("dialect", "annotation"), [("hami", "nvidia.com/vgpu-mode"), ("volcano", "volcano.sh/vgpu-mode")]
)
def test_what_a_pod_may_ask_by_annotation_is_a_yes_and_nothing_else(dialect: str, annotation: str, word: str) -> None:
    names = name_index(DEFAULT).names[dialect]
    container = {"name": "main", "resources": {"limits": {names.count: 1, names.memory: 1000}}}
    pod = {"metadata": {"annotations": {annotation: word}}, "spec": {"containers": [container]}}
    try:
        accepted = parse(pod, DEFAULT) is not None
    except BadInput:
        accepted = False
    cell = TABLE[dialect][BY_ANNOTATION[word]]
    assert accepted == (cell != "–"), (
        f"{annotation}: {word} is {'' if accepted else 'not '}accepted; the page says {cell}"
    )
