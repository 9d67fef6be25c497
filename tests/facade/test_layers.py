"""The facade's units include one another in one direction: no cycles, and the order of the folders holds.

A unit is a .c file together with the header of the same name.
"""

import re

import pytest

from tests.building import ROOT

FACADE = ROOT / "native/facade"
FOLDERS = ("shared", "cuda", "memory", "compute", "view", "nvml", "cover")
# What each folder may include besides itself. Memory and compute do not know each other, nor do the two libraries.
ALLOWED = {
    "shared": set[str](),
    "cuda": {"shared"},
    "memory": {"shared", "cuda"},
    "compute": {"shared", "cuda"},
    "view": {"shared", "cuda", "memory", "compute"},
    "nvml": {"shared"},
    "cover": set[str](),
}
# Headers that are not units: those that every part may include.
INTERFACES = {path.name for path in (ROOT / "native/include").glob("*.h")}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def includes() -> dict[str, set[str]]:
    """The units that each unit includes, as folder/name."""
    graph: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in sorted((FACADE / folder).glob("*.[ch]")):
            unit = f"{folder}/{path.stem}"
            names = [name for name in INCLUDE.findall(path.read_text()) if not name.startswith("generated/")]
            wrong = [name for name in names if name not in INTERFACES and not (FACADE / name).is_file()]
            assert not wrong, f"{path}: include headers by their path from native/facade, not {wrong}"
            graph.setdefault(unit, set()).update(name.removesuffix(".h") for name in names if name not in INTERFACES)
    return {unit: included - {unit} for unit, included in graph.items()}


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


def test_every_source_is_in_a_folder_of_a_layer() -> None:
    programs = {"alias.c"}  # a library of its own
    assert {path.name for path in FACADE.glob("*.[ch]")} == programs
    assert {path.name for path in FACADE.iterdir() if path.is_dir()} - {"__pycache__"} == {*FOLDERS, "generated"}


def test_no_units_include_each_other_in_a_cycle() -> None:
    graph = includes()
    assert len(graph) > 50
    assert cycle(graph) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_includes_only_lower_ones(folder: str) -> None:
    wrong = [
        f"{unit} includes {included}"
        for unit, all_included in includes().items()
        for included in sorted(all_included)
        if unit.startswith(f"{folder}/") and included.split("/")[0] not in {folder, *ALLOWED[folder]}
    ]
    assert wrong == []


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
