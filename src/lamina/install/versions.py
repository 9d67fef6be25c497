"""Versions of Kubernetes, and which of them an installation is for."""

import re

from lamina.errors import BadInput

Version = tuple[int, int, int]
OLDEST = (1, 20)
NEWEST = (1, 36)
"""The newest version that Lamina was tested with."""


def parse_version(text: str) -> Version:
    """The numbers of a version such as v1.29.3-gke.100. Raises BadInput."""
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d])", text)
    if found is None:
        raise BadInput(f"the Kubernetes version must look like 1.30.2, got {text!r}")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def warning_of(version: Version) -> str:
    """A sentence about a version that is newer than the tested ones, or nothing. Raises BadInput for one too old."""
    if version[:2] < OLDEST:
        raise BadInput(f"Kubernetes {_text(version[:2])} is too old; Lamina needs {_text(OLDEST)} or newer")
    if version[:2] > NEWEST:
        return f"Kubernetes {_text(version[:2])} is newer than {_text(NEWEST)}, the newest that Lamina was tested with"
    return ""


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
