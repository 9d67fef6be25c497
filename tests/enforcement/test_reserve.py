"""What is free in the file system of `usage` files goes to new files only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.reserve import NAME, allocate, fill_reserve, make_reserve
from tests.enforcement.gpu_uuids import UUID

ALONE = ("unshare", "--mount", "--propagation", "private")
SIZE_MIB = 8
GROWING = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    for size in (1 << 30, 1 << 20, 4096):
        try:
            os.posix_fallocate(file, os.fstat(file).st_size, size)
        except OSError:
            pass
"""


def in_a_tmpfs(folder: Path, test: str) -> None:
    """Run a function of this file in a small tmpfs, in a mount namespace that ends with it."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")
    code = f"import tests.enforcement.test_reserve as t, pathlib; t.{test}(pathlib.Path({str(folder)!r}))"
    mount = f'mount -t tmpfs -o size={SIZE_MIB}m lamina {folder} && exec "$0" -c "$1"'
    command = [*ALONE, "sh", "-c", mount, sys.executable, code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr


def container(folder: Path, devices: int = 1) -> Path:
    folder.mkdir()
    gpus = tuple(DeviceLimit(uuid=UUID.format(number), memory_bytes=1 << 30) for number in range(devices))
    write_container(folder, Limits(devices=gpus))
    return folder / "usage"


@pytest.mark.root
def test_a_container_takes_no_more_than_a_small_part_and_others_are_made(tmp_path: Path) -> None:
    in_a_tmpfs(tmp_path, "growing")


def growing(folder: Path) -> None:
    make_reserve(folder)
    fill_reserve(folder)
    usage = container(folder / "hostile")
    fill_reserve(folder)
    attacker = subprocess.Popen([sys.executable, "-c", GROWING, usage])
    try:
        for number in range(10):
            assert container(folder / str(number)).stat().st_blocks * 512 >= layout.usage_bytes(1)
            os.truncate(usage, layout.usage_bytes(1))  # as an agent does
            fill_reserve(folder)
            assert usage.stat().st_blocks * 512 < layout.usage_bytes(1) + (SIZE_MIB << 20) // 4
    finally:
        attacker.kill()
        attacker.wait()


@pytest.mark.root
def test_files_of_all_sizes_are_made_until_the_reserve_is_empty(tmp_path: Path) -> None:
    in_a_tmpfs(tmp_path, "all_sizes")


def all_sizes(folder: Path) -> None:
    make_reserve(folder)
    fill_reserve(folder)
    for number, devices in enumerate((1, 16, 2, 8, 1)):
        assert container(folder / str(number), devices).stat().st_blocks * 512 >= layout.usage_bytes(devices)
    made = 5
    with pytest.raises(Exception, match="No space left on device"):
        for made in range(5, 1000):
            container(folder / str(made))
    assert made > 10
    assert (folder / NAME).stat().st_size == 0
    assert all((folder / str(number) / "usage").stat().st_blocks for number in range(made))


def test_a_file_system_without_a_reserve_is_left_as_it_is(tmp_path: Path) -> None:
    fill_reserve(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with (tmp_path / "file").open("wb") as file:
        allocate(file.fileno(), 10_000, tmp_path)
    assert (tmp_path / "file").stat().st_size == 10_000
