"""The wheel of this tree, made in a folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(folder: Path, epoch: int) -> Path:
    """Build the wheel for this machine with the tools of locks/lab.txt, at this time in its entries."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*command, str(ROOT)], check=True, env=os.environ | {"PATH": path, "SOURCE_DATE_EPOCH": str(epoch)})
    (wheel,) = folder.glob("lamina-*.whl")
    return wheel
