"""What a container does to its own files neither stops nor harms its node."""

import ctypes
import os
import stat
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, read_limits, read_usage, write_container
from lamina.enforcement import arbitration as arbitration_module
from lamina.enforcement.activity import MAX_PROCESSES
from lamina.enforcement.arbiter import Arbiter
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.open_usage import OWNER, OpenUsage
from lamina.enforcement.usage_arrays import head_bytes
from lamina.errors import Outside
from tests.enforcement.gpu_uuids import UUID
from tests.enforcement.leases import lease
from tests.waiting import wait_until

LIMITS = Limits(devices=(DeviceLimit(uuid=UUID.format(1), memory_bytes=1 << 30),))
SIZE = layout.usage_bytes(1)
AT_ONCE_S = 10
"""Far less than the 45 s for which an open waits for a lease by default."""


class Watched:
    """An arbitration over the containers `a` and `b`, and what it reports."""

    def __init__(self, root: Path) -> None:
        self.a, self.b = root / "a", root / "b"
        for folder in (self.a, self.b):
            folder.mkdir()
            write_container(folder, LIMITS)
        self.reports: list[tuple[str, str]] = []
        self.arbitration = Arbitration(report=lambda folder, what: self.reports.append((folder.name, what)))

    def attend(self) -> None:
        self.arbitration.attend((self.a, self.b))

    def tick(self) -> None:
        self.arbitration.tick(time.monotonic_ns())

    def heartbeat(self, folder: Path) -> int:
        return int(layout.ArbiterFile.from_buffer_copy((folder / "arbiter").read_bytes()).heartbeat)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.mark.parametrize("name", ["usage", "arbiter", "limits"])
def test_a_lease_blocks_no_other_container_and_is_tried_again(watched: Watched, name: str) -> None:
    with lease(watched.a / name) as taken:
        assert taken == "leased"
        began = time.monotonic()
        watched.attend()
        watched.tick()
        assert time.monotonic() - began < AT_ONCE_S
        assert watched.heartbeat(watched.b) > 0
        assert [folder for folder, _ in watched.reports] == ["a"]
    watched.attend()
    watched.tick()
    assert watched.heartbeat(watched.a) > 0


@pytest.mark.parametrize("name", ["usage", "arbiter"])
def test_no_lease_can_be_taken_while_the_agent_has_the_file(watched: Watched, name: str) -> None:
    watched.attend()
    with lease(watched.a / name) as taken:
        assert taken != "leased"


@pytest.mark.parametrize(("name", "read"), [("usage", read_usage), ("limits", read_limits)])
def test_reading_a_leased_file_fails_at_once(watched: Watched, name: str, read) -> None:  # type: ignore[no-untyped-def]
    with lease(watched.a / name):
        began = time.monotonic()
        with pytest.raises(Outside, match="lease"):
            read(watched.a / name)
        assert time.monotonic() - began < AT_ONCE_S


@pytest.mark.parametrize("size", [0, 100, SIZE - 1])
def test_a_truncated_file_stays_truncated_and_is_set_aside(watched: Watched, size: int) -> None:
    """Zeros in the place of what is gone would be an empty account."""
    watched.attend()
    os.truncate(watched.a / "usage", size)
    for _ in range(2):
        watched.tick()
        watched.attend()
    assert (watched.a / "usage").stat().st_size == size
    assert {folder for folder, what in watched.reports if "cut off" in what} == {"a"}
    assert watched.heartbeat(watched.a) == 0 < watched.heartbeat(watched.b)


@pytest.mark.parametrize("size", [SIZE + 1, 1 << 30])
def test_the_size_is_restored_and_reported(watched: Watched, size: int) -> None:
    watched.attend()
    os.truncate(watched.a / "usage", size)
    watched.tick()
    wait_until(lambda: (watched.a / "usage").stat().st_size == SIZE, "the size stays")
    assert (watched.a / "usage").stat().st_blocks * 512 >= SIZE, "pages must not be missing later"
    assert [folder for folder, what in watched.reports if "size" in what] == ["a"]
    assert watched.heartbeat(watched.b) > 0


def test_a_file_cannot_become_a_setuid_program(watched: Watched) -> None:
    watched.attend()
    (watched.a / "usage").chmod(0o4755)
    watched.tick()
    wait_until(lambda: stat.S_IMODE((watched.a / "usage").stat().st_mode) == 0o666, "the mode stays")
    assert [folder for folder, what in watched.reports if "mode" in what] == ["a"]


@pytest.mark.root
def test_the_owner_and_the_mode_are_restored(watched: Watched) -> None:
    assert (watched.a / "usage").stat().st_uid == OWNER
    watched.attend()
    os.chown(watched.a / "usage", 0, 0)
    (watched.a / "usage").chmod(0o6777)
    watched.tick()

    def kept() -> tuple[int, int, int]:
        found = (watched.a / "usage").stat()
        return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)

    wait_until(lambda: kept() == (OWNER, OWNER, 0o666), "owner and mode stay")


def test_a_file_of_someone_else_is_read_and_left_as_it_is(watched: Watched) -> None:
    watched.arbitration.attend((watched.a, watched.b), writing=lambda folder: folder == watched.b)
    for size in (100, SIZE + 1):
        os.truncate(watched.a / "usage", size)
        watched.tick()
        assert (watched.a / "usage").stat().st_size == size
    assert watched.heartbeat(watched.a) == 0 < watched.heartbeat(watched.b)


@pytest.mark.parametrize("devices", [1, 16])
def test_what_a_file_claims_does_not_decide_how_much_of_it_is_read(tmp_path: Path, devices: int) -> None:
    gpus = tuple(DeviceLimit(uuid=UUID.format(i), memory_bytes=1 << 30) for i in range(devices))
    write_container(tmp_path, Limits(devices=gpus))
    read: list[int] = []

    class Counted(OpenUsage):
        def read(self, size: int, offset: int) -> bytes:
            read.append(size)
            return super().read(size, offset)

    with mock.patch("lamina.enforcement.open_container.OpenUsage", Counted):
        arbitration = Arbitration()
        arbitration.attend((tmp_path,))
    slots = layout.UsageFile.slots_used.offset
    for used in (0, 1, MAX_PROCESSES, layout.SLOTS, (1 << 32) - 1):
        with (tmp_path / "usage").open("r+b") as file:
            os.pwrite(file.fileno(), used.to_bytes(4, "little"), slots)
        read.clear()
        arbitration.tick(time.monotonic_ns())
        slots_read = min(used, MAX_PROCESSES) * layout.slot_stride(devices)
        assert sum(read) == ctypes.sizeof(layout.SignalFile) + head_bytes(devices) + slots_read
    arbitration.close()


def test_a_container_that_is_being_made_or_removed_is_not_reported(watched: Watched) -> None:
    (watched.a / "limits").unlink()
    (watched.b / "usage").unlink()
    watched.attend()
    assert watched.reports == []


class Held:
    """A container of which each call on its usage file takes as long as a test wants: a process holds it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, call: str) -> None:
        self.free, self.waiting, self.closed = threading.Event(), threading.Event(), threading.Event()
        held, original = self, getattr(OpenUsage, call)
        inode = (folder / "usage").stat().st_ino

        def slow(usage: OpenUsage, *arguments: Any) -> Any:
            if usage.inode == inode:
                held.waiting.set()
                held.free.wait()
            return original(usage, *arguments)

        close = OpenUsage.close

        def closed(usage: OpenUsage) -> None:
            close(usage)
            if usage.inode == inode:
                held.closed.set()

        monkeypatch.setattr(OpenUsage, call, slow)
        monkeypatch.setattr(OpenUsage, "close", closed)


@pytest.mark.parametrize("call", ["changes", "read", "take_over", "restore"])
def test_a_process_that_holds_its_file_stops_no_other(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Opening, looking, reading and restoring are never waited for. The container is set aside meanwhile, and is
    attended to again when the call has returned and nothing was changed for a while."""
    monkeypatch.setattr(arbitration_module, "CALM_S", 0.0)
    held = Held(monkeypatch, watched.a, call)
    if call == "restore":
        watched.attend()
        os.truncate(watched.a / "usage", SIZE + 1)
    for _ in range(5):
        watched.attend()
        watched.tick()
    assert held.waiting.wait(60)
    before = watched.heartbeat(watched.a)
    for _ in range(5):
        watched.attend()
        watched.tick()
    assert watched.heartbeat(watched.a) == before
    beat = watched.heartbeat(watched.b)
    watched.tick()
    assert watched.heartbeat(watched.b) > beat > 0
    assert [each.folder for each in watched.arbitration.containers] == [watched.b]
    assert {folder for folder, _ in watched.reports} == {"a"}
    if call != "restore":
        assert {what for _, what in watched.reports} == {
            "its files cannot be used: a process holds it up for more than 20 ms"
        }
    assert not held.closed.is_set(), "its file is closed only after the call, or its number would be another's"
    held.free.set()
    assert held.closed.wait(60)

    def attended_again() -> bool:
        watched.attend()
        watched.tick()
        return watched.heartbeat(watched.a) > before

    wait_until(attended_again, "it stays set aside")
    watched.arbitration.close()


def test_a_file_that_is_changed_again_and_again_is_restored_apart_from_the_ticks(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arbitration_module, "CALM_S", 0.05)
    watched.attend()
    for _ in range(20):
        os.truncate(watched.a / "usage", SIZE << 4)
        (watched.a / "usage").chmod(0o4777)
        watched.attend()
        watched.tick()
        wait_until(lambda: (watched.a / "usage").stat().st_size == SIZE, "the size stays")
    assert watched.heartbeat(watched.a) == 0 < watched.heartbeat(watched.b)
    watched.arbitration.close()


def test_an_arbitration_ends_with_all_of_its_threads(watched: Watched) -> None:
    before = set(threading.enumerate())
    watched.attend()
    os.truncate(watched.a / "usage", SIZE + 1)
    watched.tick()
    watched.arbitration.close()
    wait_until(lambda: set(threading.enumerate()) <= before, "a thread stays")


def test_an_untouched_file_is_not_reported(watched: Watched) -> None:
    watched.attend()
    for _ in range(3):
        watched.tick()
    assert watched.reports == []


def test_a_file_that_was_replaced_by_another_kind_is_not_opened(watched: Watched) -> None:
    (watched.a / "usage").unlink()
    os.mkfifo(watched.a / "usage")
    (watched.b / "usage").unlink()
    (watched.b / "usage").symlink_to("/dev/zero")
    began = time.monotonic()
    watched.attend()
    watched.tick()
    assert time.monotonic() - began < AT_ONCE_S
    assert sorted(folder for folder, _ in watched.reports) == ["a", "b"]


def test_a_file_that_cannot_be_understood_concerns_its_container_alone(watched: Watched) -> None:
    watched.attend()
    original, first = arbitration_module.activities, ctypes.sizeof(layout.UsageFile)
    marked = (watched.a / "usage").read_bytes()[:first]

    def activities(readings: Any, *rest: Any) -> Any:
        if any(reading.head[:first] == marked[: len(reading.head)] for reading in readings):
            raise ZeroDivisionError("planted")
        return original(readings, *rest)

    with mock.patch.object(arbitration_module, "activities", activities):
        watched.tick()
    assert watched.reports == [("a", "its files cannot be used: planted")]
    assert watched.heartbeat(watched.b) and not watched.heartbeat(watched.a)


def test_a_gpu_whose_time_cannot_be_divided_stops_no_other(tmp_path: Path) -> None:
    folders, failed = [tmp_path / "a", tmp_path / "b"], []
    for number, folder in enumerate(folders):
        folder.mkdir()
        write_container(folder, Limits(devices=(DeviceLimit(uuid=UUID.format(number), memory_bytes=1 << 30),)))
    arbitration = Arbitration(failed=lambda gpu, error: failed.append((gpu, str(error))))
    arbitration.attend(folders)
    original = Arbiter.tick

    def tick(self: Arbiter, now: int, tenants: Any, refunded: Any) -> Any:
        if tenants[0].name == str(folders[0]):
            raise ZeroDivisionError("planted")
        return original(self, now, tenants, refunded)

    with mock.patch.object(Arbiter, "tick", tick):
        arbitration.tick(time.monotonic_ns())
    arbiters = [layout.ArbiterFile.from_buffer_copy((folder / "arbiter").read_bytes()) for folder in folders]
    assert [bool(each.heartbeat) for each in arbiters] == [False, True]
    assert failed == [(UUID.format(0), "planted")]
    arbitration.tick(time.monotonic_ns())
    assert all(layout.ArbiterFile.from_buffer_copy((folder / "arbiter").read_bytes()).heartbeat for folder in folders)
    arbitration.close()
