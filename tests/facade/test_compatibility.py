"""Images with a CUDA driver library of their own for forward compatibility: it is below the facade, not next to it."""

import shutil
from pathlib import Path

import pytest

from tests.facade.conftest import PRELUDE
from tests.facade.image_drivers import FOLDER, LIBRARY, image_library, node
from tests.facade.mounted import Mounted


def is_same(box: Mounted, path: str, other: Path) -> bool:
    done = box.run("cmp", path, other)
    assert not done.stderr or done.stderr.startswith("cmp: EOF"), done.stderr
    return done.returncode == 0


@pytest.mark.parametrize(("version", "below"), [("580.65.06", True), ("550.90.07", False), ("535.54.03", False)])
def test_a_newer_driver_of_the_image_is_below_the_facade(version: str, below: bool, tmp_path: Path) -> None:
    box = node(tmp_path)
    path = image_library(box, version)
    assert is_same(box, path, box.libraries.folder / "libcuda.so.1")
    used = tmp_path / f"libcuda.so.{version}" if below else box.driver / "libcuda.so.1"
    assert is_same(box, "/run/lamina-driver/libcuda.so.1", used)


def test_of_several_the_newest_is_used_and_all_are_covered(tmp_path: Path) -> None:
    box = node(tmp_path)
    versions = {"560.35.05": "/usr/local/cuda-12.6/compat", "580.65.06": FOLDER, "570.10.01": "/usr/local/cuda/compat"}
    for version, folder in versions.items():
        assert is_same(box, image_library(box, version, folder), box.libraries.folder / "libcuda.so.1")
    assert is_same(box, "/run/lamina-driver/libcuda.so.1", tmp_path / "libcuda.so.580.65.06")


def test_a_program_that_loads_it_by_its_path_is_held(tmp_path: Path) -> None:
    box = node(tmp_path)
    path = image_library(box, "580.65.06")
    script = PRELUDE.replace('"libcuda.so.1"', repr(path)) + "begin(), print(free())"
    done = box.run("python3", "-c", script, LD_LIBRARY_PATH=FOLDER)
    assert done.stdout.startswith("(0, ") and int(done.stdout.split()[1].strip(")\n")) < 1000, done.stderr


def test_a_link_in_the_image_is_not_followed(tmp_path: Path) -> None:
    box = node(tmp_path)
    (victim := tmp_path / "victim").mkdir()
    shutil.copyfile(LIBRARY, victim / "libcuda.so.580.65.06")
    box.links.append((str(victim), FOLDER))
    done = box.run("cmp", victim / "libcuda.so.580.65.06", LIBRARY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert is_same(box, "/run/lamina-driver/libcuda.so.1", box.driver / "libcuda.so.1")


def test_a_driver_without_a_version_in_its_name_stays(tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    path = image_library(box, "580.65.06")
    assert is_same(box, path, box.libraries.folder / "libcuda.so.1")
    assert is_same(box, "/run/lamina-driver/libcuda.so.1", LIBRARY)


@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1", "libcuda.so.580", "libcudadebugger.so.580.65.06"])
def test_other_names_are_no_versions(name: str, tmp_path: Path) -> None:
    box = node(tmp_path)
    box.image.append((LIBRARY, f"{FOLDER}/{name}"))
    assert is_same(box, f"{FOLDER}/{name}", LIBRARY)
    assert is_same(box, "/run/lamina-driver/libcuda.so.1", box.driver / "libcuda.so.1")
