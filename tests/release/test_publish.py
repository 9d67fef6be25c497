"""The images of all architectures are pushed under one name, whose digest is what is signed."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from release.publish import DIGEST, CannotPublish, images, push
from tests.cluster.components.images import write

VERSION = "0.2.0.dev1+gabc"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release with an image of one file for each architecture."""
    (root := tmp_path / "root").mkdir()
    (made := tmp_path / "dist").mkdir()
    for architecture in ("amd64", "arm64"):
        (root / "file").write_text(architecture)
        archive = made / f"lamina-{VERSION}-image-{architecture}.tar"
        write(archive, "lamina:tried", root, architecture=architecture)
    return made


def test_one_name_has_the_images_of_all_architectures(folder: Path, tmp_path: Path) -> None:
    if shutil.which("buildah") is None:
        pytest.skip("no buildah: install the package buildah")
    digest = push(folder, f"oci:{tmp_path / 'registry'}")
    blobs = tmp_path / "registry/blobs/sha256"
    (pushed,) = json.loads((tmp_path / "registry/index.json").read_text())["manifests"]
    assert pushed["digest"] == digest == (folder / DIGEST).read_text().strip()
    assert pushed["annotations"]["org.opencontainers.image.ref.name"] == "0.2.0.dev1_gabc"
    index = (blobs / digest.removeprefix("sha256:")).read_bytes()
    assert hashlib.sha256(index).hexdigest() == digest.removeprefix("sha256:")
    manifests = json.loads(index)["manifests"]
    assert [each["platform"]["architecture"] for each in manifests] == ["amd64", "arm64"]
    assert all((blobs / each["digest"].removeprefix("sha256:")).exists() for each in manifests)


def test_images_of_two_versions_are_no_release(folder: Path) -> None:
    assert images(folder)[0] == VERSION
    (folder / "lamina-0.1.0-image-amd64.tar").touch()
    with pytest.raises(CannotPublish, match="images of 2 versions"):
        images(folder)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPublish, match="images of 0 versions; make one release"):
        push(tmp_path, "oci:nowhere")
