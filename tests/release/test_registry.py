"""The targets of the Makefile that publish a release, against a registry; cosign and gh record their calls.

Then the commands of docs/how-to/air-gapped.md copy the image from there to another name, as into a registry without
access to others.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina import __version__
from lamina.install.chart import chart_version
from release.__main__ import write_chart
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.images import write
from tests.helm import find_helm
from tests.release import registry as registries
from tests.release.registry import PASSWORD, USER, Registry
from version import ROOT

VERSION, TAG = "0.2.0.dev1+gabc", "0.2.0.dev1_gabc"
RECORDER = """#!/bin/sh
echo "$0 $*" >> {calls}
case "$*" in *--password-stdin*) cat >> {calls}; echo >> {calls} ;; esac
"""


class Publisher:
    """A checkout with the files of a release in dist/, and the account of a registry."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder, self.registry, self.calls = folder, registry, folder / "calls"

    def run(self, *command: str, **more: str) -> str:
        done = self.registry.run(*command, folder=self.folder, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, target: str, *settings: str, **more: str) -> "subprocess.CompletedProcess[str]":
        command = ("make", "-f", str(ROOT / "Makefile"), target, f"PYTHON={sys.executable}", *settings)
        return self.registry.run(*command, folder=self.folder, PYTHONPATH=str(ROOT), **more)

    def made(self, target: str, *settings: str, **more: str) -> str:
        done = self.make(target, *settings, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def login(self, password: str) -> "subprocess.CompletedProcess[str]":
        return self.make("login", REGISTRY=f"{self.registry.host}/someone", ACTOR=USER, TOKEN=password)

    @property
    def digest(self) -> str:
        return (self.folder / "dist/IMAGE_DIGEST").read_text().strip()

    def manifest(self, name: str) -> bytes:
        """What the registry has under a name, as it was pushed."""
        return self.run("skopeo", "inspect", "--raw", f"docker://{self.registry.host}/{name}").encode()


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publisher]:
    if shutil.which("buildah") is None:
        pytest.skip("no buildah: install the package buildah")
    folder = tmp_path_factory.mktemp("published")
    (programs := folder / "bin").mkdir()
    for name in ("cosign", "gh"):
        (programs / name).write_text(RECORDER.format(calls=folder / "calls"))
        (programs / name).chmod(0o755)
    (programs / "helm").symlink_to(find_helm())
    write_release(folder / "dist", folder / "root")
    (folder / "registry").mkdir()
    try:
        with registries.started(folder / "registry", programs) as registry:
            yield Publisher(folder, registry)
    except Unavailable as error:
        pytest.skip(str(error))


def write_release(folder: Path, root: Path) -> None:
    """A release with images of one file."""
    folder.mkdir()
    root.mkdir()
    for architecture in ("amd64", "arm64"):
        (root / "file").write_text(architecture)
        archive = folder / f"lamina-{VERSION}-image-{architecture}.tar"
        write(archive, "lamina:tried", root, architecture=architecture)
    write_chart(folder / f"lamina-{chart_version(__version__)}.tgz", 0)
    for name in ("SHA256SUMS", "CONTENTS.md"):
        (folder / name).write_text(name)


@pytest.fixture(scope="module")
def published(publisher: Publisher) -> Publisher:
    """All steps of release.yml in their order, up to what a host has to do."""
    host = publisher.registry.host
    assert (done := publisher.login(PASSWORD)).returncode == 0, done.stderr
    publisher.made("publish", f"IMAGES=docker://{host}/someone/lamina")
    publisher.made("publish-chart", f"CHARTS=oci://{host}/someone/charts")
    publisher.made("sign", f"SIGNED={host}/someone/lamina")
    publisher.made("draft", GITHUB_REF_NAME="v0.2.0")
    return publisher


def test_a_wrong_password_stops_the_login(publisher: Publisher) -> None:
    done = publisher.login("wrong")
    assert done.returncode != 0 and "invalid username/password" in done.stderr
    assert not publisher.calls.exists(), "the first program that is refused ends it"


def test_the_image_of_all_architectures_has_one_tag_and_digest(published: Publisher) -> None:
    by_tag = published.manifest(f"someone/lamina:{TAG}")
    assert by_tag == published.manifest(f"someone/lamina@{published.digest}")
    platforms = [each["platform"]["architecture"] for each in json.loads(by_tag)["manifests"]]
    assert platforms == ["amd64", "arm64"]


def test_the_chart_that_is_pulled_is_the_file_of_the_release(published: Publisher) -> None:
    (chart,) = (published.folder / "dist").glob("*.tgz")
    version = chart.stem.removeprefix("lamina-")
    address = f"oci://{published.registry.host}/someone/charts/lamina"
    published.run("helm", "pull", address, "--version", version, "--destination", "registry")
    assert (published.folder / "registry" / chart.name).read_bytes() == chart.read_bytes()


def test_what_is_signed_and_drafted_is_what_was_pushed(published: Publisher) -> None:
    host = published.registry.host
    said = re.sub(r"^\S+/bin/", "", published.calls.read_text(), flags=re.MULTILINE).splitlines()
    login, password, image, sums, draft = said
    assert (login, password) == (f"cosign login --username {USER} --password-stdin {host}", PASSWORD)
    assert image == f"cosign sign --yes {host}/someone/lamina@{published.digest}"
    assert sums == "cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS"
    created, notes, *files = draft.partition(" --notes-file ")[0], *draft.partition(" --notes-file ")[2].split()
    assert (created, notes) == ("gh release create v0.2.0 --draft --verify-tag", "dist/CONTENTS.md")
    assert {*files} == {f"dist/{path.name}" for path in (published.folder / "dist").iterdir()}


def test_the_commands_for_clusters_without_the_internet_copy_all_architectures(published: Publisher) -> None:
    host, page = published.registry.host, (ROOT / "docs/how-to/air-gapped.md").read_text()
    blocks = re.findall(r"^ {4}(?:mkdir images|nl to\.txt).*\n(?: {6}.*\n)* {4}done\n", page, re.MULTILINE)
    assert len(blocks) == 2
    (published.folder / "from.txt").write_text(f"{host}/someone/lamina:{TAG}\n")
    (published.folder / "to.txt").write_text(f"{host}/inside/lamina:{TAG}\n")
    for block in blocks:
        published.run("bash", "-euo", "pipefail", "-c", block)
    assert published.manifest(f"inside/lamina:{TAG}") == published.manifest(f"someone/lamina:{TAG}")
