"""The image that is built from the Containerfile: what it holds, what it says of itself, and that its parts start."""

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from release import image, layers, locks, sbom
from tests.release import built
from version import version

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/usr/lib/lamina"}

pytestmark = pytest.mark.root
"""It can be built without root too; in `make test` it would take longer than all it tells."""


class Image:
    """An archive's parts, and what its layers hold."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.read = layers.read(archive)
        self.members: list[tarfile.TarInfo] = []
        for content in self.read.layers:
            with tarfile.open(fileobj=io.BytesIO(content)) as layer:
                self.members += layer.getmembers()


@pytest.fixture(scope="module")
def made() -> Image:
    try:
        return Image(built.archive())
    except image.CannotBuild as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def root(made: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("root")
    layers.unpack(made.archive, folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def inside(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """With nothing of this machine in sight, in a namespace of users, which some machines do not allow."""
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    words = ["unshare", "--user", "--map-root-user", str(chroot), str(root), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env=ENVIRONMENT)


def test_it_says_where_it_comes_from(made: Image) -> None:
    source = image.Source.of_checkout()
    said = {key.rpartition(".")[2]: text for key, text in made.read.config["config"]["Labels"].items()}
    assert made.read.named["annotations"]["io.containerd.image.name"] == built.NAME
    assert said["version"] == version() and re.fullmatch(r"[0-9a-f]{40}", said["revision"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", said["created"]) and said["created"] <= source.created
    assert said["created"] == made.read.config["created"] and said["licenses"] == "Apache-2.0"
    assert made.read.config["config"]["Entrypoint"] == ["/usr/bin/lamina"]
    assert made.read.config["config"]["User"] == "65532:65532"


def test_files_are_readable_by_all_and_belong_to_root(made: Image) -> None:
    files = [member for member in made.members if member.isfile()]
    wrong = [each.name for each in files if each.mode & 0o466 != 0o444 or each.uid or each.gid]
    assert wrong == []


COMPILERS = re.compile(r"/(gcc|cc|clang|ld|as|make|meson|ninja)$|/cc1$|\.(c|h|a|pyx|pxd|pyi)$")
TESTS = re.compile(r"^usr/lib/lamina/.*/tests?/|/conftest\.py$|/(pytest|hypothesis)/")
SIMULATOR = re.compile(r"lamina_lab|simgpu|lamina-smi|nvidia-smi$")


@pytest.mark.parametrize("unwanted", [COMPILERS, TESTS, SIMULATOR], ids=["compilers", "tests", "the simulator"])
def test_it_has_none_of(unwanted: re.Pattern[str], made: Image) -> None:
    assert [member.name for member in made.members if member.isfile() and unwanted.search(member.name)] == []


def test_no_library_has_the_simulator_inside(root: Path) -> None:
    libraries = [path for path in (root / "usr/lib/lamina/lamina").rglob("*.so*") if not path.is_symlink()]
    assert libraries, "the image has the facade"
    assert [path.name for path in libraries if b"SIMGPU_MACHINE" in path.read_bytes()] == []


def test_modules_are_compiled_and_do_not_depend_on_times(root: Path) -> None:
    """By flag 1 Python takes the compiled module as it is, whatever time its source has."""
    package = root / "usr/lib/lamina/lamina"
    sources = {path.stem for path in package.glob("cli/*.py")}
    compiled = {path.name.partition(".")[0]: path.read_bytes() for path in package.glob("cli/__pycache__/*.pyc")}
    assert compiled.keys() == sources
    assert {content[4:8] for content in compiled.values()} == {b"\x01\0\0\0"}


def test_its_parts_start(root: Path) -> None:
    if inside(root, "/bin/sh", "-c", "").returncode != 0:
        pytest.skip("no chroot in a namespace of users on this machine")
    answer = inside(root, "/usr/bin/lamina", "--version")
    assert answer.stdout == f"lamina {version()}\n", answer.stderr
    imports = "import lamina.agent.run, lamina.controller.run; from lamina import native; import ctypes;"
    load = "ctypes.CDLL(str(native.path('facade/libcuda.so.1'))); print('loaded')"
    tried = inside(root, "/usr/bin/python3", "-c", f"{imports} {load}")
    assert tried.stdout == "loaded\n", tried.stderr


LISTS = """import importlib.metadata as m, json; print(json.dumps([[d.name, d.version] for d in m.distributions()]))"""


def test_its_bill_of_materials_is_what_is_installed(made: Image, root: Path) -> None:
    """Python and dpkg's records, asked in the image, and the lock, say the same as the document."""
    document = json.loads(sbom.of_image(made.archive, built.NAME, version(), 0))
    said = {
        (each["purl"].removeprefix("pkg:").partition("/")[0], each["name"], each["version"])
        for each in document["components"]
    }
    answer = inside(root, "/usr/bin/python3", "-c", LISTS)
    if answer.returncode != 0:
        pytest.skip("no chroot in a namespace of users on this machine")
    python = {(canonicalize_name(name), version) for name, version in json.loads(answer.stdout)}
    assert {each[1:] for each in said if each[0] == "pypi"} == python
    pinned = locks.pins(locks.FOLDER / "image.txt") | {"lamina": [version()]}
    assert {name for name, of in python if of in pinned[name]} == pinned.keys()
    debian = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    assert {name for kind, name, _ in said if kind == "deb"} == debian
