"""The environment that holds a plain process tree."""

from pathlib import Path

import pytest

from lamina import native
from lamina.enforcement import environment
from lamina.enforcement.environment import FACADES
from lamina.errors import BadInput

DRIVER = Path("/opt/driver")


def test_it_names_facades_folder_and_driver(tmp_path: Path) -> None:
    facades = ":".join(str(native.path(name)) for name in FACADES)
    variables = environment(tmp_path, DRIVER, {"HOME": "/home/me"})
    assert variables == {
        "HOME": "/home/me", "LD_PRELOAD": facades, "LAMINA_DIR": str(tmp_path), "LAMINA_DRIVER": "/opt/driver",
    }  # fmt: skip


def test_what_was_preloaded_stays_behind_the_facades(tmp_path: Path) -> None:
    first = environment(tmp_path, DRIVER, {"LD_PRELOAD": "/a.so /b.so"})
    assert first["LD_PRELOAD"].split(":")[len(FACADES) :] == ["/a.so", "/b.so"]
    assert environment(tmp_path, DRIVER, first) == first


def test_paths_that_the_loader_cannot_take_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="absolute"):
        environment(tmp_path, Path("driver"))
    monkeypatch.setattr(native, "path", lambda name: tmp_path / "a folder" / name)
    with pytest.raises(BadInput, match="without spaces"):
        environment(tmp_path, DRIVER)
