"""The agent says whether the files that containers write are on a mount from which nothing can be run."""

import logging
from pathlib import Path

import pytest

from lamina.agent.containers.file_mount import is_bounded, missing_flags, provide_mount, remove_mount, report_flags
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mounts import SAFE, TMPFS, FakeMounts, MountPoint

FOLDER = Path("/var/lib/lamina/containers")


def mounts(**flags: str) -> FakeMounts:
    """Mounts at / and at the folders that are named by their last part, the last of each counts."""
    made = FakeMounts()
    for path in (Path("/"), *FOLDER.parents, FOLDER):
        given = flags.get(path.name or "root")
        if given is not None:
            found = [MountPoint(str(path), "ext4", frozenset(each.split(","))) for each in given.split()]
            made.table[path] = found
    return made


def bounded() -> FakeMounts:
    made = FakeMounts()
    made.table[FOLDER] = [MountPoint(str(FOLDER), TMPFS, frozenset(SAFE))]
    return made


async def test_the_tmpfs_is_mounted_once_and_is_private(tmp_path: Path) -> None:
    """Running containers have their files in it, so an agent that is replaced leaves it as it is."""
    mounted, folder = FakeMounts(), tmp_path / "lamina" / "containers"
    for size in (64, 128):
        await provide_mount(folder, size, mounted, Files())
        assert is_bounded(folder, mounted)
        assert (mounted.sizes, len(mounted.table[folder])) == ({folder: 64}, 1)
    assert folder.stat().st_mode & 0o777 == 0o700
    await remove_mount(folder, mounted)
    await remove_mount(folder, mounted)
    assert not is_bounded(folder, mounted)


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ([], False),
        ([MountPoint("", "ext4", frozenset(SAFE))], False),
        ([MountPoint("", TMPFS, frozenset({"rw"}))], False),
        ([MountPoint("", TMPFS, frozenset(SAFE)), MountPoint("", "ext4", frozenset(SAFE))], False),
        ([MountPoint("", "ext4", frozenset(SAFE)), MountPoint("", TMPFS, frozenset(SAFE))], True),
    ],
)
def test_the_last_mount_at_the_directory_itself_counts(table: list[MountPoint], found: bool) -> None:
    mounted = FakeMounts()
    mounted.table[FOLDER] = table
    assert is_bounded(FOLDER, mounted) is found


async def test_a_mount_that_is_refused_is_an_error(tmp_path: Path) -> None:
    mounted = FakeMounts()
    mounted.refuses = "mount: permission denied"
    with pytest.raises(Outside, match="permission denied"):
        await provide_mount(tmp_path / "containers", 64, mounted, Files())


@pytest.mark.parametrize(
    ("mounted", "missing"),
    [
        (mounts(root="rw"), ["nosuid", "nodev", "noexec"]),
        (mounts(root="rw", lamina="rw,nosuid,nodev"), ["noexec"]),
        (mounts(root="rw", containers="rw,nosuid,nodev,noexec"), []),
        (mounts(root="rw,nosuid,nodev,noexec", containers="rw"), ["nosuid", "nodev", "noexec"]),
        (mounts(containers="rw,nosuid,nodev,noexec rw"), ["nosuid", "nodev", "noexec"]),
        (mounts(containers="rw rw,nosuid,nodev,noexec"), []),
        (FakeMounts(), ["nosuid", "nodev", "noexec"]),
    ],
)
def test_the_mount_that_contains_the_files_counts(mounted: FakeMounts, missing: list[str]) -> None:
    assert missing_flags(FOLDER, mounted) == missing


def test_what_is_missing_is_in_the_log_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    report_flags(FOLDER, mounts(root="rw,nosuid"))
    disk, warning = caplog.records
    assert disk.levelno == warning.levelno == logging.WARNING
    assert disk.getMessage() == f"{FOLDER} is not a tmpfs of its own, so containers can fill the disk that it is on"
    assert warning.getMessage() == (
        f"{FOLDER} is mounted without nodev, noexec; on the node, add to /etc/fstab: "
        f"{FOLDER} {FOLDER} none bind,nosuid,nodev,noexec 0 0"
    )
    caplog.clear()
    report_flags(FOLDER, bounded())
    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_a_table_that_cannot_be_read_stops_no_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable(FakeMounts):
        def at(self, path: Path) -> list[MountPoint]:
            raise Outside("cannot read /proc/self/mountinfo: Permission denied")

    report_flags(FOLDER, Unreadable())
    assert "Cannot check the mount" in caplog.text
