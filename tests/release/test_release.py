"""The folder that `make release` wrote, which LAMINA_RELEASE names; `make release` runs these tests on it."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from release import image, layers, sbom
from release.__main__ import CONTENTS, SUMS
from tests.helm import helm
from version import version

SIZES = {"lamina-*_x86_64.whl": 2, "lamina-*_aarch64.whl": 2, "lamina-*-any.whl": 1.5, "lamina-*-image-*.tar": 90}
"""In millions of bytes, the most that a file may have; docs/contributing/release.md has these figures."""


@pytest.fixture(scope="module")
def folder() -> Path:
    if "LAMINA_RELEASE" not in os.environ:
        pytest.skip("no release to look at: `make release` makes one and runs these tests on it")
    return Path(os.environ["LAMINA_RELEASE"]).resolve()


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_every_file_has_its_checksum_and_its_line(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    lines = [line.split("  ") for line in (folder / SUMS).read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    assert sums.keys() == names - {SUMS}
    for name, digest in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    listed = re.findall(r"^\| `(\S+)` \| [\d,]+ B \| \S", (folder / CONTENTS).read_text(), re.MULTILINE)
    assert set(listed) == names - {SUMS, CONTENTS}


def test_it_is_complete(folder: Path) -> None:
    for package in ("lamina", "lamina_lab"):
        for machine in ("x86_64", "aarch64"):
            assert one(folder, f"{package}-{version()}-py3-none-*_{machine}.whl")
    assert one(folder, f"lamina-{version()}-py3-none-any.whl") and one(folder, f"lamina-{version()}.tar.gz")
    for architecture in image.ARCHITECTURES:
        assert one(folder, f"lamina-{version()}-image-{architecture}.tar.cdx.json")
    assert len(list(folder.glob("*.whl.cdx.json"))) == 3


@pytest.mark.parametrize("pattern", SIZES)
def test_files_stay_as_small_as_the_page_says(pattern: str, folder: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in folder.glob(pattern)}
    assert sizes and all(size <= SIZES[pattern] * 1_000_000 for size in sizes.values()), sizes


FOLDERS = re.compile(rb"/(home|root|tmp|work)/[A-Za-z0-9_.-]+/")


def test_libraries_name_no_folder_of_the_machine_that_made_them(folder: Path) -> None:
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            binaries = [name for name in archive.namelist() if archive.read(name).startswith(b"\x7fELF")]
            assert [name for name in binaries if FOLDERS.search(archive.read(name))] == []


def test_the_chart_is_one(folder: Path) -> None:
    chart = one(folder, "lamina-*.tgz")
    with gzip.open(chart) as file, tarfile.open(fileobj=file) as archive:
        assert {name.partition("/")[0] for name in archive.getnames()} == {"lamina"}
    made = helm("template", "lamina", str(chart), "--namespace", "lamina-system", "--set", "image.repository=r/lamina")
    assert made.returncode == 0 and f"r/lamina:{version().replace('+', '_')}" in made.stdout, made.stderr


@pytest.mark.parametrize("architecture", image.ARCHITECTURES)
def test_an_image_is_for_its_architecture_and_listed(architecture: str, folder: Path) -> None:
    archive = one(folder, f"lamina-*-image-{architecture}.tar")
    found = layers.read(archive)
    assert found.config["architecture"] == architecture
    assert found.config["config"]["Labels"]["org.opencontainers.image.version"] == version()
    document = json.loads((folder / f"{archive.name}.cdx.json").read_text())
    listed = {(*each["bom-ref"].split(":")[:1], each["name"], each["version"]) for each in document["components"]}
    assert listed == sbom.installed(archive)
    wheel = json.loads(one(folder, f"lamina-*_{image.ARCHITECTURES[architecture]}.whl.cdx.json").read_text())
    of_python = [each for each in wheel["components"] if each["bom-ref"].startswith("pypi:")]
    needed = {(each["name"], each["version"]) for each in of_python}
    python = {each[1:] for each in listed if each[0] == "pypi"}
    assert python - needed == {("lamina", version())} and {name for name, _ in needed} <= {name for name, _ in python}


@pytest.mark.root
@pytest.mark.parametrize("architecture", image.ARCHITECTURES)
def test_an_image_starts(architecture: str, folder: Path, tmp_path: Path) -> None:
    """That of another architecture in qemu, which runs one program and none that this one starts."""
    machine = image.ARCHITECTURES[architecture]
    emulator = shutil.which(f"qemu-{machine}-static")
    if architecture != image.HERE and emulator is None:
        pytest.skip(f"programs for {architecture} run in qemu: install Debian's package qemu-user-static")
    layers.unpack(one(folder, f"lamina-*-image-{architecture}.tar"), tmp_path)
    program = []
    if architecture != image.HERE and emulator:
        shutil.copy2(emulator, tmp_path / "emulator")
        program = ["/emulator"]
    script = (
        "import ctypes, sys; from lamina import native; import lamina.agent.run, lamina.controller.run, numpy, grpc;"
        "ctypes.CDLL(str(native.path('facade/libcuda.so.1'))); sys.argv = ['lamina', '--version'];"
        "from lamina.cli.main import main; main()"
    )
    command = ["chroot", str(tmp_path), *program, "/usr/bin/python3", "-c", script]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": "/usr/lib/lamina"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.stdout == f"lamina {version()}\n", done.stderr
