"""Figures of the driver go to the slots whose processes fit, and to no other."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.enforcement import layout
from lamina.enforcement.process_memory import SlotProcess, bytes_by_slot, slot_process, slot_processes, word

MIB = 1 << 20
A, B = SlotProcess(7, 5120), SlotProcess(8, 5120)


def owner(pid: int, start: int, namespace: int = 1) -> int:
    return pid | start << layout.PID_BITS | namespace << 48


@pytest.mark.parametrize("devices", [1, 2, 16])
def test_each_slot_that_is_taken_claims_a_process(devices: int) -> None:
    slots = bytearray(5 * layout.slot_stride(devices))
    for number, word_ in ((0, owner(7, 5120)), (3, owner(8, 5120, namespace=0x7FFF)), (4, owner(0x3FFFFF, 0x3FFFFFF))):
        layout.Slot.from_buffer(slots, number * layout.slot_stride(devices)).owner = word_
    assert slot_processes(bytes(slots), devices) == {0: A, 3: B, 4: SlotProcess(0x3FFFFF, 0x3FFFFFF)}


def test_no_more_slots_are_looked_at_than_have_a_word() -> None:
    slots = bytearray((layout.FIGURES + 5) * layout.slot_stride(1))
    for number in range(layout.FIGURES + 5):
        layout.Slot.from_buffer(slots, number * layout.slot_stride(1)).owner = owner(number + 1, 1)
    assert len(slot_processes(bytes(slots), 1)) == layout.FIGURES == ctypes.sizeof(layout.Figures) // 8


def test_a_claim_has_as_many_bits_as_a_slot() -> None:
    assert slot_process(7 + (1 << layout.PID_BITS), 5120 + (1 << layout.START_BITS)) == A


def test_a_slot_gets_the_figure_of_its_own_process() -> None:
    assert bytes_by_slot({0: A, 3: B}, [(B, 400 * MIB), (A, 303 * MIB)]) == {0: 303 * MIB, 3: 400 * MIB}


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ([], "the driver does not list it, or it has ended"),
        ([(A, None)], "the driver does not say what it uses"),
        ([(A, 0)], "the driver says that it uses nothing"),
        ([(SlotProcess(7, 5121), 303 * MIB)], "its PID belongs to a later process"),
        ([(A, 303 * MIB), (A, 16 * MIB)], "two processes look like it"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_figure_is_not_known(listed: list[tuple[SlotProcess, int | None]], why: str) -> None:
    assert bytes_by_slot({0: A}, listed) == {0: 0}, why


def test_slots_that_claim_the_same_process_all_get_its_whole_figure() -> None:
    assert bytes_by_slot({0: A, 1: A}, [(A, 303 * MIB)]) == {0: 303 * MIB, 1: 303 * MIB}


@given(st.integers(0, 4 << 40), st.floats(0, 1e8))
def test_a_word_never_says_less_than_the_driver(used: int, at: float) -> None:
    kib, ms = word(used, at) & 0xFFFFFFFF, word(used, at) >> 32
    assert kib * 1024 >= min(used, 0xFFFFFFFF << 10) and kib * 1024 < used + 1024
    assert ms == int(at * 1000) % (1 << 32)
