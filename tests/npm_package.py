"""Packages of the npm registry, as tests alone use them."""

import shutil
import subprocess
from pathlib import Path


def fetch(package: str, folder: Path) -> Path | None:
    """The package's archive, in the folder; None without npm, and where the registry cannot be reached."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    subprocess.run([npm, "pack", "--silent", package], cwd=folder, capture_output=True, check=False, timeout=300)
    return next(folder.glob("*.tgz"), None)
