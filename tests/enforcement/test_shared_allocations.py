"""Memory that processes share counts once: with its owner, or with its users where no owner stands for it."""

import ctypes
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, read_usage, write_container
from tests.enforcement.gpu_uuids import UUID

GENERATION = 7
KEY = 0xABC
DEAD, CLEARED = 2, 3
"""Slots of a process that has ended, and of one that is being removed."""


def holder(slot: int, role: int, generation: int = GENERATION) -> int:
    return role << 48 | generation << 16 | slot


def orphaned(folder: Path, *shares: tuple[int, int]) -> int:
    """What counts by its uses where these holders have a word about an allocation of so many bytes."""
    write_container(folder, Limits(devices=(DeviceLimit(uuid=UUID.format(1), memory_bytes=1 << 30),)))
    data = bytearray((folder / "usage").read_bytes())
    record = layout.UsageFile.from_buffer(data)
    record.slots_used, record.shares_used = 4, len(shares)
    for number in range(4):
        place = ctypes.sizeof(layout.UsageFile) + number * layout.slot_stride(1)
        slot = layout.Slot.from_buffer(data, place)
        slot.generation = GENERATION
        slot.owner = {DEAD: 0, CLEARED: layout.CLEARING | 5}.get(number, 100 + number)
    for number, (by, size) in enumerate(shares):
        place = layout.shares_offset(1) + number * ctypes.sizeof(layout.ShareRecord)
        share = layout.ShareRecord.from_buffer(data, place)
        share.holder, share.key, share.bytes = by, KEY, size
    del record, slot, share
    (folder / "usage").write_bytes(data)
    (device,) = read_usage(folder / "usage").devices
    assert device.held == device.orphaned
    return device.orphaned


USE = (holder(0, layout.SHARE_USE), 4096)


def test_what_its_owner_stands_for_is_not_counted_again(tmp_path: Path) -> None:
    assert orphaned(tmp_path, USE, (holder(1, layout.SHARE_OWN), 4096)) == 0


def test_two_uses_without_an_owner_count_once(tmp_path: Path) -> None:
    assert orphaned(tmp_path, USE, (holder(1, layout.SHARE_USE), 4096)) == 4096


@pytest.mark.parametrize(
    "gone",
    [
        holder(DEAD, layout.SHARE_OWN),
        holder(CLEARED, layout.SHARE_OWN),
        holder(1, layout.SHARE_OWN, GENERATION + 1),
        holder(layout.SLOTS, layout.SHARE_OWN, 0),
        holder(0xFFFF, layout.SHARE_OWN),
    ],
    ids=["ended", "being removed", "of a slot's process before", "beyond the slots", "far beyond"],
)
def test_the_word_of_an_owner_that_does_not_stand_is_none(tmp_path: Path, gone: int) -> None:
    """A tenant can write any slot's number into its file."""
    assert orphaned(tmp_path, USE, (gone, 4096)) == 4096


def test_the_use_of_a_process_that_is_gone_counts_no_more(tmp_path: Path) -> None:
    assert orphaned(tmp_path, (holder(DEAD, layout.SHARE_USE), 4096)) == 0
