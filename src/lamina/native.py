"""Where the compiled parts lie: next to the Python package, as one `pip install` puts them there."""

from pathlib import Path

from lamina.errors import LaminaError

ROOT = Path(__file__).resolve().parent / "_native"


def path(name: str) -> Path:
    """The absolute path of a native file, such as ``simgpu/libcuda.so.1``.

    Raises LaminaError when it was not built: without the library nothing can be held to a limit.
    """
    found = (ROOT / name).resolve()
    if not found.exists():
        raise LaminaError(
            f"the native part {name} is missing from {ROOT}: only packages for Linux with glibc have it; others "
            "have the commands that ask a cluster"
        )
    return found
