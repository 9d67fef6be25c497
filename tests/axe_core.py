"""The accessibility checker axe-core from the npm registry, unpacked once into the user's cache. Tests alone use it."""

import functools
import os
import tarfile
import tempfile
from pathlib import Path

from tests import npm_package

PACKAGE = "axe-core@4.10.3"
_FILE = "package/axe.min.js"


@functools.cache
def script() -> str | None:
    """Its JavaScript; None without npm, and where the registry cannot be reached."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lamina-tests"
    kept = base / f"{PACKAGE.replace('@', '-')}.js"
    if not kept.exists() and not _fetch(kept):
        return None
    return kept.read_text()


def _fetch(kept: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        archive = npm_package.fetch(PACKAGE, Path(folder))
        if archive is None:
            return False
        with tarfile.open(archive) as package:
            content = package.extractfile(_FILE)
            assert content is not None
            text = content.read()
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_suffix(f".{os.getpid()}")
    draft.write_bytes(text)
    draft.replace(kept)
    return True
