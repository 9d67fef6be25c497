"""All benchmarks, found by the programs in this folder, with their parts."""

import importlib
from pathlib import Path

from bench.parts import Parts

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, Parts]:
    """The parts of each benchmark, by the name that `python -m` takes."""
    places = sorted(path.parent.relative_to(FOLDER.parent) for path in FOLDER.glob("*/**/__main__.py"))
    names = [".".join(place.parts) for place in places]
    return {name: importlib.import_module(f"{name}.__main__").PARTS for name in names}
