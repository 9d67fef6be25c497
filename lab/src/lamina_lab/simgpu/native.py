"""Where the simulated driver is installed: next to the package."""

from pathlib import Path

from lamina.errors import LaminaError

ROOT = Path(__file__).resolve().parents[1] / "_native"


def path(name: str) -> Path:
    """The absolute path of a native file, such as ``simgpu/libcuda.so.1``. Raises LaminaError if it is not built."""
    found = (ROOT / name).resolve()
    if not found.exists():
        raise LaminaError(f"the native part {name} is missing from {ROOT}; run `pip install ./lab` again")
    return found
