"""Files that people name: what is there is read and written, and what is wrong is one sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.errors import BadInput
from lamina.ports import user_files

NO_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")


@pytest.mark.parametrize("content", [b"", b"one\n", "größer ✓".encode(), b"a\r\nb"])
def test_what_was_written_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    user_files.write(path, b"longer than anything here, and replaced")
    user_files.write(path, content)
    assert user_files.read_bytes(path) == content
    assert user_files.read_text(path) == content.decode()


def test_a_check_leaves_everything_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    user_files.check_writable(path)
    assert not path.exists()
    path.write_text("text")
    user_files.check_writable(path)
    assert path.read_text() == "text"


@pytest.mark.parametrize("content", [b"\xff", b"caf\xe9", b"\xed\xa0\x80", "x".encode("utf-16")])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"^--config {path} is not UTF-8 text$"):
        user_files.read_text(path, "--config")
    assert user_files.read_bytes(path) == content


CALLS: dict[str, Callable[[Path, str], object]] = {
    "read": user_files.read_text,
    "write": lambda path, what: user_files.write(path, b"", what),
    "write, when it is checked": user_files.check_writable,
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent/file", "No such file or directory"),
        ("folder", "Is a directory"),
        ("file/below", "Not a directory"),
        pytest.param("closed", "Permission denied", marks=NO_ROOT),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(tmp_path: Path, verb: str, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    for file, mode in (("file", 0o600), ("closed", 0)):
        (tmp_path / file).touch(mode=mode)
    path = tmp_path / name
    with pytest.raises(BadInput) as refused:
        CALLS[verb](path, "--option")
    does = verb.partition(",")[0]
    assert str(refused.value) == f"cannot {does} --option {path}: {reason}"
    with pytest.raises(BadInput) as refused:
        CALLS[verb](path, "")
    assert str(refused.value) == f"cannot {does} {path}: {reason}"


def test_a_new_folder_has_the_files_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "chart"
    user_files.write_new_folder(folder, {"Chart.yaml": "name: x\n", "templates/a/b.yaml": "", "templates/c.yaml": "ü"})
    found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert found == {"Chart.yaml": "name: x\n", "templates/a/b.yaml": "", "templates/c.yaml": "ü"}


@pytest.mark.parametrize("existing", ["folder", "file", "link"])
def test_a_folder_that_exists_is_left_alone(tmp_path: Path, existing: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=f"^--chart {tmp_path / existing} already exists; choose a new directory$"):
        user_files.write_new_folder(tmp_path / existing, {"Chart.yaml": ""}, "--chart")
    assert (tmp_path / "file").read_text() == "theirs" and list((tmp_path / "folder").iterdir()) == []


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "chart"
    with pytest.raises(BadInput, match=f"^cannot write --chart {path}: Not a directory$"):
        user_files.write_new_folder(path, {}, "--chart")
