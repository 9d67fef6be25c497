"""Units of C include one another in one direction: no cycles, and the order of the folders holds.

A unit is a .c file together with the header of the same name.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


class Tree(NamedTuple):
    """One program's sources, and what each folder may include besides itself."""

    root: Path
    allowed: dict[str, set[str]]
    apart: set[str]
    """Files and folders that belong to no layer: libraries of their own, build files, generated tables."""


# Memory and compute do not know each other, nor do the libraries in front of CUDA and NVML.
FACADE = Tree(
    ROOT / "native/facade",
    {
        "shared": set(),
        "cuda": {"shared"},
        "memory": {"shared", "cuda"},
        "compute": {"shared", "cuda"},
        "view": {"shared", "cuda", "memory", "compute"},
        "nvml": {"shared"},
        "cover": set(),
    },
    apart={"alias.c", "generated", "__pycache__"},
)
SIMULATOR = Tree(ROOT / "lab/native/simgpu", {"core": set(), "cuda": {"core"}, "nvml": {"core"}}, apart=set())
TREES = pytest.mark.parametrize("tree", [FACADE, SIMULATOR], ids=["facade", "simulator"])
# Headers that are not units: those that every part may include.
INTERFACES = {path.name for folder in ("native/include", "lab/native/include") for path in (ROOT / folder).glob("*.h")}


def includes(tree: Tree) -> dict[str, set[str]]:
    """The units that each unit includes, as folder/name."""
    graph: dict[str, set[str]] = {}
    for folder in tree.allowed:
        for path in sorted((tree.root / folder).glob("*.[ch]")):
            unit = f"{folder}/{path.stem}"
            names = [name for name in INCLUDE.findall(path.read_text()) if not name.startswith("generated/")]
            wrong = [name for name in names if name not in INTERFACES and not (tree.root / name).is_file()]
            assert not wrong, f"{path}: include headers by their path from {tree.root}, not {wrong}"
            graph.setdefault(unit, set()).update(name.removesuffix(".h") for name in names if name.endswith(".h"))
    return {unit: {name for name in included if "/" in name} - {unit} for unit, included in graph.items()}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The units of one include cycle, or an empty list."""
    done: set[str] = set()

    def visit(unit: str, path: list[str]) -> list[str]:
        if unit in path:
            return [*path[path.index(unit) :], unit]
        if unit in done:
            return []
        for included in sorted(graph.get(unit, ())):
            if found := visit(included, [*path, unit]):
                return found
        done.add(unit)
        return []

    for unit in sorted(graph):
        if found := visit(unit, []):
            return found
    return []


@TREES
def test_every_source_is_in_a_folder_of_a_layer(tree: Tree) -> None:
    sources = {path.name for path in tree.root.iterdir() if path.is_dir() or path.suffix in {".c", ".h"}}
    assert sources - tree.apart == set(tree.allowed)


@TREES
def test_no_units_include_each_other_in_a_cycle(tree: Tree) -> None:
    graph = includes(tree)
    assert len(graph) > 50
    assert cycle(graph) == []


@TREES
def test_a_folder_includes_only_lower_ones(tree: Tree) -> None:
    wrong = [
        f"{unit} includes {included}"
        for unit, all_included in includes(tree).items()
        for included in sorted(all_included)
        if included.split("/")[0] not in {(folder := unit.split("/")[0]), *tree.allowed[folder]}
    ]
    assert wrong == []


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
