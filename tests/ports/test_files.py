"""Files are whole or absent, trees go quietly, and refusals are sentences."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.errors import BadInput, Outside
from lamina.ports.files import TEMPORARY, Files

FILES = Files()


def test_a_written_file_has_its_content_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    FILES.write(path, b"one", mode=0o444)
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o444
    FILES.write(path, b"two", mode=0o666)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o666
    assert FILES.names(path.parent) == ["file"]


def test_readers_of_the_old_file_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    FILES.write(path, b"old")
    with path.open("rb") as reader:
        FILES.write(path, b"new")
        assert reader.read() == b"old"


def test_a_torn_write_of_an_earlier_process_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / f".file{TEMPORARY}").write_bytes(b"ha")
    FILES.write(tmp_path / "file", b"whole")
    assert FILES.names(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fchmod", "fsync"])
def test_a_full_disk_keeps_the_old_file_and_nothing_of_the_new(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FILES.write(tmp_path / "file", b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(Outside, match=r"^cannot write .*file: No space left on device$"):
        FILES.write(tmp_path / "file", b"new")
    assert FILES.names(tmp_path) == ["file"] and FILES.read(tmp_path / "file") == b"old"


def test_a_conflicting_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for refused in (
        lambda: FILES.write(tmp_path / "file" / "below", b""),
        lambda: FILES.read(tmp_path),
        lambda: FILES.make_folder(tmp_path / "file" / "below"),
        lambda: FILES.names(tmp_path / "file"),
        lambda: FILES.remove(tmp_path),
    ):
        with pytest.raises(Outside, match=str(tmp_path)):
            refused()


def test_absence_is_an_answer(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert FILES.read(absent) is None
    assert FILES.names(absent) == []
    assert FILES.identity(absent) is None
    FILES.remove(absent)
    FILES.remove_tree(absent)


def test_a_tree_goes_and_what_its_links_name_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("")
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    FILES.remove_tree(tmp_path / "tree")
    FILES.remove_tree(tmp_path / "link")
    assert FILES.names(tmp_path) == ["kept"]
    assert FILES.names(tmp_path / "kept") == ["file"]


def test_a_socket_goes_as_a_file_does(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
    FILES.remove_tree(tmp_path / "s")
    assert FILES.names(tmp_path) == []


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("folder", "file", "absent"):
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    kinds = {name: (FILES.has_file(tmp_path / name), FILES.has_folder(tmp_path / name)) for name in KINDS}
    assert kinds == KINDS


KINDS = {
    "file": (True, False),
    "folder": (False, True),
    "absent": (False, False),
    "link-file": (True, False),
    "link-folder": (False, True),
    "link-absent": (False, False),
    "file/below": (False, False),
}
"""Whether there is a file, and a folder."""


def test_identity_distinguishes_a_file_from_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    before = FILES.identity(path)
    assert before == FILES.identity(path)
    (tmp_path / "other").write_text("")
    (tmp_path / "other").replace(path)
    assert FILES.identity(path) not in (None, before)


def test_a_folder_has_one_user_until_that_ends(tmp_path: Path) -> None:
    claim = FILES.only_user(tmp_path)
    refusal = pytest.raises(BadInput, match="in use by another process")
    with claim, refusal, FILES.only_user(tmp_path):
        pass
    code = f"""
import os, pathlib
from lamina.ports.files import Files
with Files().only_user(pathlib.Path({str(tmp_path)!r})):
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    with FILES.only_user(tmp_path):
        pass


def test_folders_get_the_selinux_type_and_a_refusal_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few machines of tests have SELinux, so the call is looked at. What is there already keeps its type."""
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr("os.setxattr", lambda *call: calls.append(call))
    Files().make_folder(tmp_path / "plain")
    assert calls == []
    files = Files("container_file_t")
    files.make_folder(tmp_path / "a" / "b")
    files.make_folder(tmp_path / "a" / "b")
    files.make_private_folder(tmp_path / "c")
    files.label(tmp_path / "mounted")
    context = b"system_u:object_r:container_file_t:s0\0"
    folders = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c", tmp_path / "mounted"]
    assert calls == [(folder, "security.selinux", context) for folder in folders]

    def refuse(*call: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.setxattr", refuse)
    with pytest.raises(Outside, match=r"cannot set the SELinux type container_file_t of .*: Operation not supported"):
        files.make_folder(tmp_path / "d")
