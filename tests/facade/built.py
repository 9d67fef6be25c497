"""The facade built for a test: under sanitizers, or with a fault planted that the tests must find."""

import re
import shutil
import subprocess
from pathlib import Path

from tests.building import ROOT, SANITIZED

Change = tuple[str, str, str]  # a file below native/facade, what is in it once, and what replaces it

ROUNDING: tuple[Change, ...] = (
    ("memory/reserve.h", "return bytes <= DRIVER_BLOCK / 2;", "return bytes == 0;"),
    ("memory/reserve.h", "bytes > UINT64_MAX - DRIVER_BLOCK ?", "bytes <= DRIVER_BLOCK / 2 ? bytes : 0 ?"),
)
"""Requests of up to half a block count as they are."""

UNCHECKED: tuple[Change, ...] = (
    ("shared/shared_allocations.c", "device < account->limits->device_count;\n}", "account != 0 && device < ~0u;\n}"),
)
"""The device of an entry is used as it is in the file."""


def sources(tree: Path, library: str) -> list[str]:
    """The files that make up a library, as the build has them."""
    lists = dict(re.findall(r"^facade_(\w+) = files\((.*?)\)$", (tree / "meson.build").read_text(), re.S | re.M))
    parts = ["shared", "nvml"] if library == "nvml" else [part for part in lists if part != "nvml"]
    return [file for part in parts for file in re.findall(r"'([\w./]+\.c)'", lists[part])]


def copy_tree(folder: Path, library: str, changes: tuple[Change, ...] = ()) -> Path:
    """The sources of `cuda` or `nvml`, copied to the folder, with these changes."""
    tree = folder / f"{library}-tree"
    for part in ("facade", "include"):
        shutil.copytree(ROOT / "native" / part, tree / part)
    for file, before, after in changes:
        text = (tree / "facade" / file).read_text()
        assert text.count(before) == 1, f"{file} has no longer exactly one {before!r}"
        (tree / "facade" / file).write_text(text.replace(before, after))
    return tree


def build_facade(folder: Path, library: str, changes: tuple[Change, ...] = (), *flags: str) -> Path:
    """`cuda` or `nvml` in the folder, from the tree with these changes."""
    return build_tree(copy_tree(folder, library, changes), library, *flags)


def build_tree(tree: Path, library: str, *flags: str) -> Path:
    """`cuda` or `nvml` next to these sources."""
    folder, name = tree.parent, {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}[library]
    command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-fvisibility=hidden", *flags]
    command += ["-I.", "-I../include"]  # not old_glibc.h: newer linkers fail to bind its versions to the sanitizer
    command += [f'-DTABLE="generated/{library}_table.h"', f"-DFORBIDDEN={801 if library == 'cuda' else 4}"]
    command += [*sources(tree / "facade", library), "shared/trampoline.S", "-o", str(folder / name)]
    command += [f"-Wl,-soname,{name}", "-Wl,-Bsymbolic", f"-Wl,--version-script=generated/{library}.map"]
    command += ["-ldl", "-lpthread"]
    done = subprocess.run(command, cwd=tree / "facade", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / name


def sanitized(folder: Path, *libraries: str, changes: tuple[Change, ...] = ()) -> str | None:
    """LD_PRELOAD with these libraries built under sanitizers; None where the compiler has no such library."""
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    runtime = Path(found.strip())
    if not runtime.is_absolute():
        return None
    built = [build_facade(folder, library, changes, *SANITIZED) for library in libraries]
    return ":".join(str(path) for path in (runtime.resolve(), *built))
