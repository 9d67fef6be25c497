"""The image that the tests of a cluster use: complete, readable for everybody, and what its description says it is."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from lamina.install.chart import chart
from tests import container_image

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "image.tar"
    container_image.build(path, "lamina:tried", programs=["sh"])
    return path


def test_the_description_fits_the_layer(archive: Path) -> None:
    with tarfile.open(archive) as image:
        (manifest,) = json.load(image.extractfile("manifest.json"))  # type: ignore[arg-type]
        config = json.load(image.extractfile(manifest["Config"]))  # type: ignore[arg-type]
        (layer,) = manifest["Layers"]
        digest = hashlib.file_digest(image.extractfile(layer), "sha256").hexdigest()  # type: ignore[arg-type]
    assert manifest["RepoTags"] == ["lamina:tried"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
    assert config["config"]["User"] != "0"


def test_files_are_readable_by_all_and_writable_by_none(archive: Path) -> None:
    with tarfile.open(archive) as image, tarfile.open(fileobj=image.extractfile("layer.tar")) as layer:
        members = layer.getmembers()
    assert [member.name for member in members if ".." in member.name.split("/")] == []
    files = [member for member in members if member.isfile()]
    assert {"usr/bin/lamina", "bin/sh", "etc/passwd"} <= {member.name for member in files}
    assert {member.mode for member in files} == {0o644, 0o755}
    assert [member.name for member in members if member.isdir() and member.mode & 0o22] == ["tmp", "var/tmp"]


def test_its_parts_start_in_it(archive: Path, tmp_path: Path) -> None:
    """With nothing of this machine in sight, in a namespace of users, which some machines do not allow."""
    with tarfile.open(archive) as image, tarfile.open(fileobj=image.extractfile("layer.tar")) as layer:
        # As an attribute and not as an argument: Python up to 3.11.3 has no filters, and then there is none to choose.
        layer.extraction_filter = getattr(tarfile, "tar_filter", None)
        layer.extractall(tmp_path)
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    command = ["unshare", "--user", "--map-root-user", str(chroot), str(tmp_path)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(container_image.PACKAGES)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = [*command, *arguments]
        return subprocess.run(done, capture_output=True, text=True, check=False, timeout=60, env=environment)

    if run("/bin/sh", "-c", "").returncode != 0:
        pytest.skip("no chroot in a namespace of users on this machine")
    assert run("/usr/bin/lamina", "--version").stdout == f"lamina {container_image.TAG}\n"
    imports = "import lamina.agent.run, lamina.controller.run; from lamina import native; import ctypes;"
    load = "ctypes.CDLL(str(native.path('facade/libcuda.so.1'))); print('loaded')"
    tried = run("/usr/bin/python3", "-c", f"{imports} {load}")
    assert tried.stdout == "loaded\n", tried.stderr


def test_the_containerfile_copies_what_there_is_and_runs_as_the_manifests_do() -> None:
    lines = [line.split() for line in (ROOT / "Containerfile").read_text().splitlines()]
    copied = [name for word, *names in (line for line in lines if line) if word == "COPY" for name in names[:-1]]
    own = [name for name in copied if not name.startswith(("--from", "/"))]
    assert own and all((ROOT / name).exists() for name in own)
    user = re.search(r"runAsNonRoot: true, runAsUser: (\d+)", chart()["templates/_helpers.tpl"])
    assert user and ["USER", f"{user[1]}:{user[1]}"] in lines
