"""What a container's processes do on a GPU, from its `usage`. The tenant writes that file: a lie in it can only be
about itself, and nothing here believes more than a moment's worth of it."""

import ctypes

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.enforcement import layout

WINDOW = 120
"""Milliseconds that are looked at; the bins go back a little farther."""
STUCK_NS = 2_000_000_000
"""Work on the GPU for longer than this without a sign of its process may be that of one that was killed."""

Fractions = NDArray[np.float64]


class Activity(Struct, frozen=True, kw_only=True):
    """One container on one GPU. Times are CLOCK_MONOTONIC in ns.

    `brief` and `worked` have for each of the last WINDOW milliseconds, the present one last, how much of it the
    container's processes had work on the GPU, added up over processes: work so short that it had the GPU to itself, and
    other work. `busy_since` tells when each process that has work now got it.
    """

    brief: Fractions
    worked: Fractions
    busy_since: tuple[int, ...] = ()
    asked_at: int = 0
    waited_at: int = 0


def bytes_needed(devices: int, slots: int) -> int:
    """How much of a usage file is to be read for so many slots."""
    return ctypes.sizeof(layout.Usage) + slots * layout.slot_stride(devices)


def slots_used(data: bytes) -> int:
    """Slots that were ever used, by the beginning of a usage file."""
    start = layout.Usage.slots_used.offset
    return min(int.from_bytes(data[start : start + 4], "little"), layout.SLOTS)


def activity(data: bytes, device: int, devices: int, now: int) -> Activity:
    """The activity on the device of this number; `data` begins as a usage file for so many devices does."""
    start = layout.Usage.devices.offset + device * ctypes.sizeof(layout.UsageDevice)
    bins = start + layout.UsageDevice.compute.offset + layout.UsageCompute.bins.offset
    numbers = np.arange(now // layout.BIN_NS - WINDOW + 1, now // layout.BIN_NS + 1)
    words = np.frombuffer(data, np.uint64, layout.BINS, bins)[numbers % layout.BINS]
    known = (words >> np.uint64(layout.BIN_SHIFT)) == numbers.astype(np.uint64)
    stamps = _stamps(data, device, devices)
    busy, asked, waited = (stamps[:, i] for i in range(3))
    sane = (busy > 0) & (busy <= now) & (busy + STUCK_NS > now)
    return Activity(
        brief=_fractions(words >> np.uint64(layout.BRIEF_SHIFT) & np.uint64(layout.BRIEF_MOST), known),
        worked=_fractions(words & np.uint64(layout.OTHERS_MOST), known),
        busy_since=tuple(busy[sane].tolist()),
        asked_at=int(max(asked[asked <= now], default=0)),
        waited_at=int(max(waited[waited <= now], default=0)),
    )


def _fractions(us: NDArray[np.uint64], known: NDArray[np.bool_]) -> Fractions:
    fractions: Fractions = np.where(known, us, 0) / 1000
    return fractions


def _stamps(data: bytes, device: int, devices: int) -> NDArray[np.int64]:
    """Each used slot's busy_since, asked_at and waited_at."""
    stride = layout.slot_stride(devices)
    begin = ctypes.sizeof(layout.Usage)
    count = min(slots_used(data), (len(data) - begin) // stride)
    if count == 0:
        return np.zeros((0, 3), np.int64)
    slots = np.frombuffer(data, np.int64, count * stride // 8, begin).reshape(count, stride // 8)
    place = ctypes.sizeof(layout.Slot) + device * ctypes.sizeof(layout.SlotDevice) + layout.SlotDevice.compute.offset
    stamps: NDArray[np.int64] = slots[:, place // 8 : place // 8 + 3]
    return stamps
