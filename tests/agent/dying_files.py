"""Files that stop the agent at a given change."""

from pathlib import Path

from lamina.ports.files import Files
from tests.worlds.deaths import Died


class DyingFiles(Files):
    """Dies at its change number `at`, before it or, where `torn` is set, in the middle of it."""

    def __init__(self, at: int, *, torn: bool) -> None:
        self.left = at
        self.torn = torn

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        if self.left == 0 and self.torn:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f".{path.name}.tmp").write_bytes(content[: len(content) // 2])
        self.step()
        super().write(path, content, mode=mode)

    def make_folder(self, path: Path, *, mode: int = 0o755) -> None:
        self.step()
        super().make_folder(path, mode=mode)

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)

    def remove_tree(self, path: Path) -> None:
        if self.left == 0 and self.torn and path.is_dir():
            for inside in path.iterdir():
                super().remove_tree(inside)
                break
        self.step()
        super().remove_tree(path)

    def step(self) -> None:
        if self.left == 0:
            raise Died
        self.left -= 1
