"""The port to mounts: the kernel's table, and real mounts in a mount namespace of the test's own."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.errors import Outside
from lamina.ports.mounts import PRIVATE, FakeMounts, LinuxMounts, parse_table

TABLE = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
63 43 0:39 / /run/my\\040dir rw,nosuid,nodev,noexec,relatime - tmpfs lamina rw,size=1024k
64 63 0:40 / /run/my\\040dir rw,nosuid shared:5 master:2 - ext4 /dev/sdb rw
odd line
"""
ALONE = ("unshare", "--mount", "--propagation", "private")


def test_the_table_of_mounts_is_read_with_odd_names_and_optional_fields() -> None:
    found = parse_table(TABLE)
    assert [(each.path, each.kind, each.safe) for each in found] == [
        ("/", "ext4", False),
        ("/run/my dir", "tmpfs", True),
        ("/run/my dir", "ext4", False),
    ]


@pytest.mark.parametrize("character", ["\r", "\v", "\f", "\x85", "\u2028"])
def test_the_name_of_a_directory_is_no_line_of_the_table(character: str) -> None:
    forged = "64 63 0:40 / /run/lamina rw,nosuid,nodev,noexec - tmpfs lamina rw"
    found = parse_table(f"63 43 0:39 / /mnt/x{character}{forged}\n")
    assert [each.path for each in found] != ["/run/lamina"] and len(found) <= 1


def in_a_namespace(test: str, folder: Path) -> None:
    """Run a test of this file in a mount namespace of its own, which ends with it."""
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")
    code = (
        f"import tests.ports.test_mounts as t, asyncio, pathlib; asyncio.run(t.{test}(pathlib.Path({str(folder)!r})))"
    )
    command = [*ALONE, sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.root
def test_a_tmpfs_has_its_size_and_no_programs(tmp_path: Path) -> None:
    in_a_namespace("tmpfs", tmp_path)


async def tmpfs(folder: Path) -> None:
    mounts = LinuxMounts()
    assert mounts.at(folder) == []
    await mounts.tmpfs(folder, 2)
    (found,) = mounts.at(folder)
    assert (found.kind, found.safe, folder.stat().st_mode & 0o7777) == ("tmpfs", True, 0o1777)
    with pytest.raises(OSError, match="No space left on device"):
        (folder / "much").write_bytes(bytes(3 << 20))
    (folder / "much").unlink()
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    with pytest.raises(PermissionError):
        await asyncio.create_subprocess_exec(str(folder / "program"))
    await mounts.unmount(folder)
    assert mounts.at(folder) == [] and list(folder.iterdir()) == []
    await mounts.tmpfs(folder, 2, mode=PRIVATE)
    assert folder.stat().st_mode & 0o7777 == 0o700
    await mounts.unmount(folder)
    with pytest.raises(Outside, match="not mounted"):
        await mounts.unmount(folder)


@pytest.mark.root
def test_a_directory_keeps_its_files_and_runs_none_of_them(tmp_path: Path) -> None:
    in_a_namespace("restrict", tmp_path)


async def restrict(folder: Path) -> None:
    (folder / "kept").write_text("kept")
    mounts = LinuxMounts()
    await mounts.restrict(folder)
    (found,) = mounts.at(folder)
    assert found.safe and (folder / "kept").read_text() == "kept"
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    with pytest.raises(PermissionError):
        await asyncio.create_subprocess_exec(str(folder / "program"))
    descriptor = os.open(folder / "kept", os.O_RDONLY)
    await mounts.unmount(folder)
    os.close(descriptor)
    assert (folder / "program").exists()


async def test_a_mount_that_fails_says_why(tmp_path: Path) -> None:
    for mounts in (LinuxMounts(), FakeMounts()):
        with pytest.raises(Outside, match="mount"):
            await mounts.tmpfs(tmp_path / "missing", 1)
        assert mounts.at(tmp_path / "missing") == []
