"""The installed facade never changes under a container that has it mapped."""

import mmap
import os
import time
from pathlib import Path

import pytest

from lamina.agent.containers import cdi
from lamina.agent.containers.paths import PRELOAD, FacadeLibraries, install_libraries, remove_unused
from lamina.agent.state.settings import COVER, LIBRARIES
from lamina.errors import Outside
from lamina.ports.files import Files, kept_open
from tests.enforcement.leases import lease

NO_DRIVER = Path("/nowhere")


def facade(folder: Path, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    for library in (*LIBRARIES, COVER):
        (folder / library).write_text(f"{library} {content}")
    return folder


def test_each_build_has_its_own_folder_and_stays(tmp_path: Path) -> None:
    first = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    inodes = {path.name: path.stat().st_ino for path in first.folder.iterdir()}
    second = install_libraries(facade(tmp_path / "facade", "two"), tmp_path / "lib", Files(), NO_DRIVER)
    assert first.folder != second.folder
    assert (first.folder / LIBRARIES[0]).read_text().endswith("one")
    again = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    assert again == first
    assert {path.name: path.stat().st_ino for path in first.folder.iterdir()} == inodes


def test_the_loaders_list_names_the_libraries_where_they_are_mounted(tmp_path: Path) -> None:
    installed = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    mounts = {mount.container: mount for mount in installed.mounts()}
    listed = mounts["/etc/ld.so.preload"].host.read_text().split()
    assert [Path(path).name for path in listed] == list(LIBRARIES)
    for path in listed:
        assert mounts[path].host.read_bytes() == (tmp_path / "facade" / Path(path).name).read_bytes()
    assert not any(mount.writable for mount in mounts.values())


def test_what_a_dying_agent_left_is_completed(tmp_path: Path) -> None:
    installed = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    (installed.folder / LIBRARIES[1]).unlink()
    assert install_libraries(tmp_path / "facade", tmp_path / "lib", Files(), NO_DRIVER) == installed
    assert (installed.folder / LIBRARIES[1]).is_file()


def test_a_leased_file_is_replaced_without_waiting(tmp_path: Path) -> None:
    installed = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    before = (installed.folder / PRELOAD).stat().st_ino
    with lease(installed.folder / PRELOAD) as taken:
        assert taken == "leased"
        began = time.monotonic()
        assert install_libraries(tmp_path / "facade", tmp_path / "lib", Files(), NO_DRIVER) == installed
        assert time.monotonic() - began < 10
    assert (installed.folder / PRELOAD).stat().st_ino != before


def test_no_container_can_lease_what_others_have_too(tmp_path: Path) -> None:
    installed = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    with kept_open(tmp_path / "lib"), lease(installed.folder / PRELOAD) as taken:
        assert taken != "leased"
    with lease(installed.folder / PRELOAD) as taken:
        assert taken == "leased"


def spec_of(libraries: FacadeLibraries, specs: Path, name: str) -> Path:
    path = specs / cdi.file_name(name)
    Files().write(path, cdi.build_spec(name, {}, libraries.mounts(), [libraries.hook()]))
    return path


def test_an_old_version_stays_as_long_as_a_spec_names_it(tmp_path: Path) -> None:
    specs, root = tmp_path / "cdi", tmp_path / "lib"
    one, two, three = (
        install_libraries(facade(tmp_path / "facade", text), root, Files(), NO_DRIVER)
        for text in ("one", "two", "three")
    )
    used = spec_of(one, specs, "1" * 32)
    remove_unused(three, specs, Files())
    assert {path.name for path in root.iterdir()} == {one.version, three.version}
    assert sorted(path.name for path in one.folder.iterdir()) == sorted((*LIBRARIES, COVER, "ld.so.preload"))
    spec_of(three, specs, "1" * 32)
    assert used.exists()
    remove_unused(three, specs, Files())
    assert [path.name for path in root.iterdir()] == [three.version]
    assert not two.folder.exists()


def test_a_version_with_a_name_that_begins_like_another_is_another(tmp_path: Path) -> None:
    current = install_libraries(facade(tmp_path / "facade", "one"), tmp_path / "lib", Files(), NO_DRIVER)
    shorter = FacadeLibraries(current.folder.with_name(current.version[:-1]), current.version[:-1])
    shorter.folder.mkdir()
    spec_of(current, tmp_path / "cdi", "1" * 32)
    remove_unused(current, tmp_path / "cdi", Files())
    assert not shorter.folder.exists() and current.folder.exists()


def test_a_removed_version_stays_in_processes_that_have_it_mapped(tmp_path: Path) -> None:
    old = install_libraries(facade(tmp_path / "facade", "old"), tmp_path / "lib", Files(), NO_DRIVER)
    with (old.folder / LIBRARIES[0]).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        remove_unused(
            install_libraries(facade(tmp_path / "facade", "new"), tmp_path / "lib", Files(), NO_DRIVER),
            tmp_path / "cdi",
            Files(),
        )
        assert not old.folder.exists()
        assert mapped[:] == b"libcuda.so.1 old"


def test_others_can_use_what_was_installed_under_a_hostile_umask(tmp_path: Path) -> None:
    source = facade(tmp_path / "facade", "one")
    before = os.umask(0o777)
    try:
        installed = install_libraries(source, tmp_path / "state" / "lib", Files(), NO_DRIVER)
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in (installed.folder, *installed.folder.parents[:2])}
    assert set(modes.values()) == {0o755}
    files = {path.name: path.stat().st_mode & 0o777 for path in installed.folder.iterdir()}
    assert files == {**dict.fromkeys((*LIBRARIES, COVER), 0o555), "ld.so.preload": 0o444}


def test_a_facade_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(Outside, match="does not exist"):
        install_libraries(tmp_path, tmp_path / "lib", Files(), NO_DRIVER)
