"""The commands of the guides about the installation, as they stand."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parents[3] / "docs/how-to"
_NAMES = ("install.md", "coexist.md", "upgrade.md", "uninstall.md")


def command(beginning: str) -> str:
    """The guides' only command that begins so; it may be there several times."""
    guides = "\n".join((_FOLDER / name).read_text() for name in _NAMES)
    lines = set(re.findall(rf"^ {{4,}}({re.escape(beginning)}.*?)(?:  +#.*)?$", guides, re.MULTILINE))
    assert len(lines) == 1, f"the guides have {len(lines)} different commands that begin with {beginning!r}"
    return str(lines.pop())
