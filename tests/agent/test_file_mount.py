"""The agent says whether the files that containers write are on a mount from which nothing can be run."""

import logging
from pathlib import Path

import pytest

from lamina.agent.containers.file_mount import missing_flags, report_flags
from lamina.errors import Outside
from lamina.ports.mounts import FakeMounts, MountPoint

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
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        f"{FOLDER} is mounted without nodev, noexec; on the node, add to /etc/fstab: "
        f"{FOLDER} {FOLDER} none bind,nosuid,nodev,noexec 0 0"
    )
    caplog.clear()
    report_flags(FOLDER, mounts(containers="nosuid,nodev,noexec"))
    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_a_table_that_cannot_be_read_stops_no_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable(FakeMounts):
        def at(self, path: Path) -> list[MountPoint]:
            raise Outside("cannot read /proc/self/mountinfo: Permission denied")

    report_flags(FOLDER, Unreadable())
    assert "Cannot check the mount" in caplog.text
