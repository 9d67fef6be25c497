"""The image of this tree, built once for all tests that look at it or run it."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from release import image, wheels
from tests.cluster.components import cache
from version import image_tag, version

ROOT = Path(__file__).resolve().parents[2]
NAME = f"stage.local/lamina:{image_tag(version())}"
_MADE_OF = ("src", "native", "deploy/helm", "man", "pyproject.toml", "meson.build", "meson.options")
_MADE_BY = (
    "Containerfile",
    ".dockerignore",
    "locks/image.txt",
    "release/base.py",
    "release/image.py",
    "release/wheels.py",
)
_KEPT = 2
"""Images of earlier states of the tree that stay, for those who go back and forth."""


def archive() -> Path:
    """The image NAME as an archive. Raises release.image.CannotBuild where this machine cannot build it."""
    if reason := image.missing():
        raise image.CannotBuild(reason)
    made = cache.kept(f"image-{_state()}", _make)
    others = sorted(cache.folder().glob("image-*[0-9a-f]"), key=lambda path: path.stat().st_mtime)
    for old in [path for path in others if path != made][:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return made / "lamina.tar"


def _make(work: Path, result: Path) -> None:
    source = image.Source.of_checkout()
    shutil.rmtree(work)  # what an attempt left that was interrupted
    work.mkdir()
    wheel = wheels.compiled(work, "lamina", image.ARCHITECTURES[image.HERE])
    image.build(result / "lamina.tar", NAME, wheel, source)


def _state() -> str:
    """A word for the content of all files that the image is made of."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *_MADE_OF, *_MADE_BY]
    names = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout.split()
    state = hashlib.sha256(NAME.encode())
    for path in sorted({ROOT / name for name in names}):
        if path.is_file():
            state.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return state.hexdigest()[:16]
