"""The versions of Kubernetes that an installation is for."""

from lamina.errors import BadInput
from lamina.install.terms import Version

OLDEST = (1, 20)
NEWEST = (1, 36)
"""The newest version that Lamina was tested with."""


def warning_of(version: Version) -> str:
    """A sentence about a version that is newer than the tested ones, or nothing. Raises BadInput for one too old."""
    if version[:2] < OLDEST:
        raise BadInput(f"Kubernetes {_text(version[:2])} is too old; Lamina needs {_text(OLDEST)} or newer")
    if version[:2] > NEWEST:
        return f"Kubernetes {_text(version[:2])} is newer than {_text(NEWEST)}, the newest that Lamina was tested with"
    return ""


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
