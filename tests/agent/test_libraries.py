"""The installed facade never changes under a container that has it mapped."""

from pathlib import Path

import pytest

from lamina.agent.libraries import install
from lamina.agent.settings import LIBRARIES
from lamina.errors import Outside
from lamina.ports.files import Files


def facade(folder: Path, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    for library in LIBRARIES:
        (folder / library).write_text(f"{library} {content}")
    return folder


def test_each_build_has_its_own_folder_and_stays(tmp_path: Path) -> None:
    first = install(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files())
    inodes = {path.name: path.stat().st_ino for path in first.folder.iterdir()}
    second = install(facade(tmp_path / "facade", "two"), tmp_path / "lib", Files())
    assert first.folder != second.folder
    assert (first.folder / LIBRARIES[0]).read_text().endswith("one")
    again = install(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files())
    assert again == first
    assert {path.name: path.stat().st_ino for path in first.folder.iterdir()} == inodes


def test_the_loaders_list_names_the_libraries_where_they_are_mounted(tmp_path: Path) -> None:
    installed = install(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files())
    mounts = {mount.container: mount for mount in installed.mounts()}
    listed = mounts["/etc/ld.so.preload"].host.read_text().split()
    assert [Path(path).name for path in listed] == list(LIBRARIES)
    for path in listed:
        assert mounts[path].host.read_bytes() == (tmp_path / "facade" / Path(path).name).read_bytes()
    assert not any(mount.writable for mount in mounts.values())


def test_what_a_dying_agent_left_is_completed(tmp_path: Path) -> None:
    installed = install(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files())
    (installed.folder / LIBRARIES[1]).unlink()
    assert install(tmp_path / "facade", tmp_path / "lib", Files()) == installed
    assert (installed.folder / LIBRARIES[1]).is_file()


def test_a_facade_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(Outside, match="is gone"):
        install(tmp_path, tmp_path / "lib", Files())
