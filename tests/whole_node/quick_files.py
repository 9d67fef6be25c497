"""The disk, for tests that change it often."""

import os
from pathlib import Path

from lamina.ports.files import Files


class QuickFiles(Files):
    """Does not wait for the disk."""

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        self.make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.unlink(missing_ok=True)
        temporary.write_bytes(content)
        temporary.chmod(mode)
        os.replace(temporary, path)  # noqa: PTH105
