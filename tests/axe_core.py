"""The accessibility checker axe-core from the npm registry, unpacked once into the user's cache. Tests alone use it."""

import functools
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

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
    npm = shutil.which("npm")
    if npm is None:
        return False
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        subprocess.run([npm, "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, check=False, timeout=120)
        archives = list(Path(folder).glob("*.tgz"))
        if not archives:
            return False
        with tarfile.open(archives[0]) as package:
            content = package.extractfile(_FILE)
            assert content is not None
            text = content.read()
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_suffix(f".{os.getpid()}")
    draft.write_bytes(text)
    draft.replace(kept)
    return True
