"""A container's files appear whole or not at all, and a rewrite does not forget what is held."""

import ctypes
import os
import stat
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, read_limits, read_usage, write_container
from lamina.enforcement.usage import decode
from lamina.errors import BadInput, Outside
from tests.enforcement.gpu_uuids import UUID

TWO = Limits(devices=tuple(DeviceLimit(uuid=UUID.format(n), memory_bytes=1 << 30) for n in (1, 2)))
OTHER = Limits(devices=(DeviceLimit(uuid=UUID.format(3), memory_bytes=1 << 30),))


def hold(path: Path, slot: int, device: int, kind: str, amount: int) -> None:
    """Writes into the file what a process would."""
    with path.open("r+b") as file:
        start = ctypes.sizeof(layout.UsageFile) + slot * layout.slot_stride(2)
        os.pwrite(file.fileno(), (4242 + slot).to_bytes(8, "little"), start)
        os.pwrite(file.fileno(), b"python\0", start + layout.Slot.name.offset)
        where = start + 64 + device * 128 + 8 * layout.KINDS.index(kind)
        os.pwrite(file.fileno(), amount.to_bytes(8, "little"), where)
        os.pwrite(file.fileno(), (slot + 1).to_bytes(4, "little"), layout.UsageFile.slots_used.offset)


def test_all_files_are_made_with_their_modes(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_container(tmp_path, TWO)
    finally:
        os.umask(before)
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {
        "limits": 0o444,
        "usage": 0o666,
        "arbiter": 0o644,
        "signal": 0o666,
        "neighbors": 0o755,
    }
    assert read_limits(tmp_path / "limits") == TWO
    usage = read_usage(tmp_path / "usage")
    assert [device.uuid for device in usage.devices] == [UUID.format(1), UUID.format(2)]
    assert usage.processes == ()
    assert (tmp_path / "usage").stat().st_blocks * 512 >= layout.usage_bytes(2), "pages must not be missing later"


def test_what_is_held_is_read_by_process_and_kind(tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    hold(tmp_path / "usage", 0, 0, "data", 100)
    hold(tmp_path / "usage", 0, 0, "context", 7)
    hold(tmp_path / "usage", 1, 1, "pool", 30)
    usage = read_usage(tmp_path / "usage")
    assert [(process.pid, process.name) for process in usage.processes] == [(4242, "python"), (4243, "python")]
    assert usage.processes[0].held[UUID.format(1)]["data"] == 100
    assert usage.processes[0].total(UUID.format(1)) == 107
    assert [device.held for device in usage.devices] == [107, 30]


def test_new_limits_for_the_same_gpus_keep_the_account(tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    hold(tmp_path / "usage", 0, 0, "data", 100)
    before = (tmp_path / "usage").stat().st_ino
    more = Limits(devices=tuple(DeviceLimit(uuid=d.uuid, memory_bytes=5) for d in TWO.devices))
    write_container(tmp_path, more)
    assert read_limits(tmp_path / "limits") == more
    assert (tmp_path / "usage").stat().st_ino == before
    assert read_usage(tmp_path / "usage").devices[0].held == 100


@pytest.mark.parametrize("damage", [b"", b"nonsense", bytes(layout.usage_bytes(1))], ids=["empty", "short", "zeros"])
def test_a_usage_file_of_other_gpus_or_none_is_replaced(damage: bytes, tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    first = read_usage(tmp_path / "usage").generation
    write_container(tmp_path, OTHER)
    usage = read_usage(tmp_path / "usage")
    assert [device.uuid for device in usage.devices] == [UUID.format(3)]
    assert usage.generation != first
    (tmp_path / "usage").write_bytes(damage)
    write_container(tmp_path, OTHER)
    assert read_usage(tmp_path / "usage").devices == usage.devices


def test_bad_limits_leave_everything_as_it_was(tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    with pytest.raises(BadInput):
        write_container(tmp_path, Limits(devices=()))
    assert read_limits(tmp_path / "limits") == TWO
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arbiter", "limits", "neighbors", "signal", "usage"]


def test_a_missing_folder_is_an_error_of_the_outside(tmp_path: Path) -> None:
    with pytest.raises(Outside):
        write_container(tmp_path / "gone", TWO)
    with pytest.raises(Outside):
        read_usage(tmp_path / "gone")


def test_a_tenant_may_write_anything_into_its_usage(tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    data = bytearray((tmp_path / "usage").read_bytes())
    for position in range(layout.UsageFile.generation.offset, len(data), 5):
        data[position] = 0xFF
    usage = decode(bytes(data))
    assert len(usage.processes) <= layout.SLOTS


def test_a_usage_file_that_its_tenants_blew_up_is_refused_unread(tmp_path: Path) -> None:
    write_container(tmp_path, TWO)
    os.truncate(tmp_path / "usage", 1 << 40)
    with pytest.raises(BadInput, match="wrong size"):
        read_usage(tmp_path / "usage")
