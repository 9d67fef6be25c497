"""The page of the file that describes a lab, from its types, and the cards that a lab can have."""

from collections.abc import Iterator
from typing import Any

from docs.generate.fields import fields
from docs.generate.markdown import code, page, sentence, table
from lamina.core.cards import CARDS
from lamina_lab.cluster.plan import LabPlan, NodePlan
from lamina_lab.simgpu import GpuSpec

_INTRODUCTION = """
`lamina lab up --machines FILE` describes each node of a lab, instead of the options about nodes. An example is
[examples/lab-two-kinds.yaml](../../examples/lab-two-kinds.yaml).
"""
STRUCTS = (LabPlan, NodePlan, GpuSpec)
"""All types whose keys the page lists."""


def pages() -> Iterator[tuple[str, str]]:
    rows = [*_rows(LabPlan, ""), *_rows(NodePlan, "nodes[]."), *_rows(GpuSpec, "nodes[].gpus[].")]
    cards = "\n".join(f"* `{key}`" for key in sorted({card.key for card in CARDS.values()}))
    keys = table(("key", "meaning", "default"), rows)
    source = "lab/src/lamina_lab"
    yield "lab-file.md", page("The lab's file", source, _INTRODUCTION, keys, "## Cards", cards)


def _rows(struct: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    for field in fields(struct):
        default = "required" if field.required else code(field.default)
        yield code(prefix + field.name), sentence(field.meaning), default
