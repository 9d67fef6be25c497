"""The facade as it was built for an earlier CUDA: without the names that came later."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.building import ROOT
from tests.facade.built import build_tree, copy_tree
from tests.facade.driver_libraries import generate

ENTRY = re.compile(r"^ENTRY(?:_PER_THREAD)?\((\w+), (\d+), (\w+)", re.M)


@cache
def versions() -> dict[str, int]:
    """The CUDA version that brought a name, for the functions of the simulated driver and those with several forms."""
    listed = {name: since for name, (_, since) in generate.read_classes("cuda").items() if since}
    text = (ROOT / "lab/native/simgpu/cuda/entry_points.def").read_text()
    simulated = {symbol: int(version) for _, version, symbol in ENTRY.findall(text)}
    plain = listed | simulated
    names = generate.read_classes("cuda")
    return plain | {f"{name}{end}": v for name, v in plain.items() for end in ("_ptsz", "_ptds") if name + end in names}


def later(reviewed: int) -> set[str]:
    """The names that a table of this version lacks."""
    return {name for name, version in versions().items() if version > reviewed}


def build_old_facade(folder: Path, reviewed: int) -> Path:
    """libcuda.so.1 whose table ends with a version of CUDA. Functions for later names are compiled and not exported."""
    tree = copy_tree(folder, "cuda")
    dropped, classes = later(reviewed), generate.read_classes("cuda")
    kept = [f"{kind} {name} {since or ''}" for name, (kind, since) in classes.items() if name not in dropped]
    (tree / "facade/cuda.classes").write_text("\n".join([f"reviewed {reviewed}", *kept, ""]))
    subprocess.run([sys.executable, tree / "facade/generate.py"], check=True)
    replaced = sorted(name for name in dropped if generate.MACROS[classes[name][0]] == "HOOK")
    return build_tree(tree, "cuda", *(f"-DENTRY_{name}=ENTRIES" for name in replaced))
