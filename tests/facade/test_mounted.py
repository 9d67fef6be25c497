"""The facade in the driver's place: with real mounts, made in the order in which a container runtime makes them."""

from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.facade.mounted import Mounted
from tests.facade.runtime import LIBRARY_FOLDER, VERSION, within


@pytest.mark.parametrize("nvidia_first", [True, False], ids=["before ours", "after ours"])
def test_every_path_of_the_driver_is_the_facade(nvidia_first: bool, tmp_path: Path) -> None:
    node = tmp_path / "a  node"  # the kernel's list of mounts writes spaces as numbers
    node.mkdir()
    box = Mounted(node, 1000, nvidia_first=nvidia_first)
    paths = [f"{LIBRARY_FOLDER}/libcuda.so", f"{LIBRARY_FOLDER}/libcuda.so.1", f"{LIBRARY_FOLDER}/libcuda.so.{VERSION}"]
    paths += [f"{LIBRARY_FOLDER}/libnvidia-ml.so.1", f"{LIBRARY_FOLDER}/libnvidia-ml.so.{VERSION}"]
    for path in paths:
        library = "libcuda.so.1" if "libcuda" in path else "libnvidia-ml.so.1"
        done = box.run("cmp", path, box.libraries.folder / library)
        assert done.returncode == 0, done.stdout + done.stderr
    done = box.run("cmp", "/run/lamina-driver/libcuda.so.1", simgpu.library("libcuda.so.1"))
    assert done.returncode == 0, done.stderr


def test_a_container_that_cannot_be_identified_does_not_start(tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    box.edits["mounts"] = [mount for mount in box.edits["mounts"] if mount["containerPath"] != "/run/lamina/limits"]
    done = box.run("true")
    assert done.returncode != 0 and "cannot find the container's root by its mount of /run/lamina/limits" in done.stderr


def test_a_volume_that_is_named_like_the_limits_stops_no_start(tmp_path: Path) -> None:
    (volume := tmp_path / "volume").mkdir()
    box = Mounted(tmp_path, 1000)
    limits = box.edits["mounts"].pop(0)
    box.show(volume, "/run/x/run/lamina/limits")
    box.edits["mounts"].append(limits)
    box.show(volume, "/run/y/run/lamina/limits")
    done = box.run("cmp", f"{LIBRARY_FOLDER}/libcuda.so.1", box.libraries.folder / "libcuda.so.1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_driver_is_covered_wherever_it_was_brought_in(tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    box.show(simgpu.library("libcuda.so.1"), "/run/odd/libcuda.so.999")
    box.show(simgpu.library("libcuda.so.1"), "/run/odd/libcudart.so.12")
    done = box.run("cmp", "/run/odd/libcuda.so.999", box.libraries.folder / "libcuda.so.1")
    assert done.returncode == 0, done.stdout + done.stderr
    done = box.run("cmp", "/run/odd/libcudart.so.12", simgpu.library("libcuda.so.1"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_a_later_mount_hides_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    box = Mounted(tmp_path, 1000)
    box.show(simgpu.library("libcuda.so.1"), "/run/volume/libcuda.so.1")
    box.show(tmp_path / "volume", "/run/volume")
    done = box.run("ls", "/run/volume")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("target", ["../..{}", "libcuda.so.1", "/gone"])
def test_links_of_a_later_mount_lead_the_hook_nowhere(target: str, tmp_path: Path) -> None:
    """A link in a volume must not have the hook cover another file."""
    (victim := tmp_path / "victim").write_text("as it was")
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "libcuda.so.1").symlink_to(target.format(victim))
    box = Mounted(tmp_path, 1000)
    box.show(simgpu.library("libcuda.so.1"), "/run/volume/libcuda.so.1")
    box.show(tmp_path / "volume", "/run/volume")
    done = box.run("cat", victim)
    assert (done.returncode, done.stdout) == (0, "as it was"), done.stderr


def test_without_the_facade_on_the_node_a_container_does_not_start(tmp_path: Path) -> None:
    box = Mounted(tmp_path, 1000)
    hook = box.edits["hooks"][0]
    hook["args"] = [hook["args"][0], str(tmp_path / "gone")]
    done = box.run("true")
    assert done.returncode != 0 and "cannot put the facade over" in done.stderr


@pytest.mark.parametrize(
    ("target", "path", "found"),
    [
        ("/run", "/link/file", "run/file"),
        ("run", "/link/file", "run/file"),
        ("../../run", "/link/file", "run/file"),
        ("/run/../../etc", "/link/../file", "file"),
        ("gone/deeper", "/link", "gone/deeper"),
        ("/", "/link/link/file", "file"),
    ],
)
def test_links_of_the_image_stay_below_its_root(target: str, path: str, found: str, tmp_path: Path) -> None:
    """An ordinary user cannot write to the machine's `/run`, and root should not."""
    (tmp_path / "link").symlink_to(target)
    assert within(tmp_path, path) == tmp_path / found


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError, match="too many links in /link"):
        within(tmp_path, "/link")
