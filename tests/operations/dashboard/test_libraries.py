"""The libraries that the page brings along: each file is that of its package, byte for byte, with its license."""

import tarfile
import tempfile
from pathlib import Path

import pytest

from lamina.operations import dashboard
from release import sbom
from tests import npm_package

FOLDER = Path(dashboard.__file__).with_name("page") / "lib"
FILES = {
    "preact@10.27.2": {"preact.module.js": "dist/preact.module.js", "LICENSE.preact": "LICENSE"},
    "htm@3.1.1": {"htm.module.js": "dist/htm.module.js", "LICENSE.htm": "LICENSE"},
    "uplot@1.6.32": {
        "uPlot.iife.min.js": "dist/uPlot.iife.min.js",
        "uPlot.min.css": "dist/uPlot.min.css",
        "LICENSE.uplot": "LICENSE",
    },
}
"""By package and version: our files, and where they are in the package."""


def test_nothing_else_is_brought_along() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {name for files in FILES.values() for name in files}


def test_the_bill_of_materials_lists_them() -> None:
    assert {f"{name}@{version}" for name, version in sbom.PAGE_LIBRARIES.items()} == set(FILES)


def test_they_are_small() -> None:
    assert sum((FOLDER / name).stat().st_size for files in FILES.values() for name in files) < 80_000


@pytest.mark.parametrize("package", FILES)
def test_files_are_those_of_the_package(package: str) -> None:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        archive = npm_package.fetch(package, Path(folder))
        if archive is None:
            pytest.skip("no package: install npm, and reach its registry, to compare with it")
        with tarfile.open(archive) as members:
            for name, place in FILES[package].items():
                content = members.extractfile(f"package/{place}")
                assert content is not None and content.read() == (FOLDER / name).read_bytes(), name
