"""What an index would get: wheels without a Python's ABI for old C libraries, one without C parts, and the sources."""

import email
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release import wheels
from tests.facade.driver_libraries import LIBRARIES, generate, reported
from version import ROOT, version

LINUX_ALONE = ("sched_getaffinity", "pidfd_open", "memfd_create", "setns", "unshare", "eventfd", "O_PATH", "O_TMPFILE")
"""What Python's module os has on Linux and not on a Mac."""


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.without_c_parts(tmp_path_factory.mktemp("pure"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("build") is None or not (ROOT / ".git").exists():
        pytest.skip("a source distribution needs the Python package build, and git")
    return wheels.sources(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def client(pure: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel without C parts, unpacked, in a Python without what only Linux has."""
    folder = tmp_path_factory.mktemp("client")
    with zipfile.ZipFile(pure) as wheel:
        wheel.extractall(folder)
    lines = ["import os", *(f"vars(os).pop({name!r}, None)" for name in LINUX_ALONE)]
    (folder / "sitecustomize.py").write_text("\n".join(lines) + "\n")
    return folder


def run(client: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(client), "KUBECONFIG": str(client / "none"), "COLUMNS": "200"}
    command = [sys.executable, "-m", "lamina", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=client)


def metadata(text: str) -> "email.message.Message":
    return email.message_from_string(text)


def test_a_wheel_without_c_parts_is_for_every_machine(pure: Path) -> None:
    assert pure.name == f"lamina-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(pure) as wheel:
        names = wheel.namelist()
    assert [name for name in names if "_native" in name or re.search(r"\.(so|c|h)\b", name)] == []
    assert "lamina/install/chart/Chart.yaml" in names


def test_the_client_asks_clusters_without_c_parts(client: Path) -> None:
    assert run(client, "--version").stdout == f"lamina {version()}\n"
    made = run(client, "install", "--set", "image.repository=example.com/lamina", "--kube-version", "1.36.0")
    assert made.returncode == 0 and "kind: DaemonSet" in made.stdout, made.stderr
    for words in (("gpus",), ("pods",), ("why", "pod")):
        asked = run(client, *words)
        assert asked.returncode == 2 and asked.stderr.startswith("lamina: kubeconfig"), asked.stderr


def test_what_needs_c_parts_says_so(client: Path) -> None:
    asked = run(client, "run", "--simulate", "T4", "--memory", "1Gi", "--", "true")
    assert asked.returncode != 0
    assert "only packages for Linux with glibc have it" in asked.stderr and "Traceback" not in asked.stderr


def test_commands_of_the_lab_say_what_to_install(client: Path) -> None:
    without = "import sys; sys.modules['lamina_lab'] = None\nfrom importlib import metadata\n"
    without += "metadata.entry_points = lambda **_: ()\nfrom lamina.cli.main import main\n"
    environment = os.environ | {"PYTHONPATH": str(client)}
    for word in ("lab", "demo"):
        script = f"{without}sys.argv[1:] = [{word!r}, 'up']\nmain()"
        command = [sys.executable, "-c", script]
        asked = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        said = f"lamina: the command {word} is in another package; `pip install 'lamina[lab]'` installs it\n"
        assert (asked.returncode, asked.stderr) == (2, said)


def test_an_index_can_show_the_description(pure: Path) -> None:
    """No picture and no link that is relative to the repository."""
    with zipfile.ZipFile(pure) as wheel:
        found = metadata(wheel.read(f"lamina-{version()}.dist-info/METADATA").decode())
    text = str(found.get_payload())
    assert "pip install" in text and found["Description-Content-Type"] == "text/markdown"
    assert re.findall(r"\]\((?!https://)", text) + re.findall(r"!\[|<img", text) == []
    assert found.get_all("Provides-Extra", []).count("lab") == 1
    if importlib.util.find_spec("twine") is not None:
        checked = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", pure], check=False)
        assert checked.returncode == 0


def test_the_sources_are_complete_and_hold_nothing_else(sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)
        archive.extractall(tmp_path)
    kept = (
        "LICENSE PKG-INFO README.md VERSION deploy man meson.build meson.options native pyproject.toml src version.py"
    )
    assert {name.partition("/")[0] for name in names if name} == {*kept.split()}
    (folder,) = tmp_path.iterdir()
    said = subprocess.run([sys.executable, "version.py"], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert said == f"{version()}\n"


def test_the_wheel_for_aarch64_names_no_python_and_needs_a_c_library_of_2012(tmp_path: Path) -> None:
    needed = ("ziglang", "auditwheel", "wheel")
    if any(importlib.util.find_spec(name) is None for name in needed):
        pytest.skip(f"needs the Python packages {', '.join(needed)}: `pip install '.[release]'`")
    made = wheels.compiled(tmp_path, "lamina", "aarch64")
    assert made.name.startswith(f"lamina-{version()}-py3-none-") and "manylinux_2_17_aarch64" in made.name
    with zipfile.ZipFile(made) as wheel:
        wheel.extractall(tmp_path)
    built = tmp_path / "lamina/_native"
    binaries = [path for path in built.rglob("*") if path.is_file()]
    assert {path.parent.name for path in binaries} == {"facade", "placement", "verify"}
    for path in binaries:
        assert "AArch64" in reported("readelf", "-h", path)
    assert "INTERP" not in reported("readelf", "-lW", built / "facade/lamina-cover")
    for library, place in LIBRARIES.items():
        symbols = reported("readelf", "-W", "--dyn-syms", built / place)
        assert {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([0-9.]+)", symbols)} == {(2, 17)}
        defined = [line.split() for line in symbols.splitlines() if " UND " not in line and " GLOBAL " in line]
        assert {words[7] for words in defined} == set(generate.read_classes(library))
