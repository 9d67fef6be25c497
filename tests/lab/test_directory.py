import os
from pathlib import Path

import pytest

from lamina.errors import BadInput
from lamina_lab.host import directory
from lamina_lab.host.directory import lab_directory, labs_root, make_private


@pytest.mark.parametrize("name", ["default", "a", "my-lab", "x" * 20, "lab2"])
def test_a_plain_name_is_a_lab(name: str) -> None:
    assert lab_directory(name).name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a b", "../x", "a/b", "x" * 21, "ü"])
def test_other_names_are_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(BadInput, match="use up to 20 lower-case letters"):
        lab_directory(name)


def test_every_socket_fits_under_the_longest_allowed_root(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path("/" + "x" * (directory._MAX_ROOT - 3))
    monkeypatch.setenv("LAMINA_LABS", str(root))
    node = lab_directory("a").node(63)
    sockets = [
        node.kubelet_api,
        node.kubelet / "device-plugins" / "kubelet.sock",
        node.kubelet / "device-plugins" / "lamina-nvidia.com-gpu.sock",
        node.kubelet / "pod-resources" / "kubelet.sock",
    ]
    assert max(len(os.fsencode(path)) for path in sockets) <= 107
    monkeypatch.setenv("LAMINA_LABS", str(root) + "x")
    with pytest.raises(BadInput, match="set LAMINA_LABS to a shorter path"):
        lab_directory("a")


def test_a_relative_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_LABS", "labs")
    with pytest.raises(BadInput, match="absolute path"):
        labs_root()


def test_a_private_directory_is_for_its_user_only(tmp_path: Path) -> None:
    made = tmp_path / "a" / "b"
    make_private(made)
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(BadInput, match="belongs to another user or is a link"):
        make_private(tmp_path / "link")


def test_a_folder_that_holds_no_lab_is_not_listed_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_LABS", str(tmp_path))
    (tmp_path / "stray").mkdir()
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "plan.json").write_text("{}")
    assert [lab.name for lab in directory.known_labs()] == ["lab"]
