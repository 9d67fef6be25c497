"""What a container's processes do on a GPU, from its `usage`. The tenant writes that file: a lie in it can only be
about itself, and nothing here believes more than a moment's worth of it."""

import ctypes
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.enforcement import layout

WINDOW = 120
"""Milliseconds that are looked at; the bins go back a little farther."""
STUCK_NS = 2_000_000_000
"""Work on the GPU for longer than this without a sign of its process may be that of one that was killed."""

Fractions = NDArray[np.float64]
NOTHING: Fractions = np.zeros(WINDOW)
NOTHING.flags.writeable = False


class Activity(Struct, frozen=True, kw_only=True):
    """One container on one GPU. Times are CLOCK_MONOTONIC in ns.

    `brief` and `worked` have for each of the last WINDOW milliseconds, the present one last, how much of it the
    container's processes had work on the GPU, added up over processes: work that had the GPU to itself, and other
    work. `busy_since` tells when each process that has work now got it.
    """

    brief: Fractions = NOTHING
    worked: Fractions = NOTHING
    busy_since: tuple[int, ...] = ()
    asked_at: int = 0
    waited_at: int = 0

    @property
    def seen(self) -> bool:
        """Whether there was any work in the window."""
        return bool(self.busy_since) or self.brief is not NOTHING or self.worked is not NOTHING


def head_bytes(devices: int) -> int:
    """How much of the beginning of a usage file tells about so many devices."""
    return layout.Usage.devices.offset + devices * ctypes.sizeof(layout.UsageDevice)


def slots_used(head: bytes) -> int:
    """Slots that were ever used, by the beginning of a usage file."""
    start = layout.Usage.slots_used.offset
    return min(int.from_bytes(head[start : start + 4], "little"), layout.SLOTS)


_BINS = layout.Usage.devices.offset + layout.UsageDevice.compute.offset + layout.UsageCompute.bins.offset
_STAMPS = ctypes.sizeof(layout.Slot) + layout.SlotDevice.compute.offset


def activity(head: bytes, slots: bytes, device: int, devices: int, now: int) -> Activity:
    """The activity on the device of this number, by the beginning and the slots of a usage file for so many devices."""
    places, numbers = _window(now // layout.BIN_NS)
    bins = _BINS + device * ctypes.sizeof(layout.UsageDevice)
    words = np.frombuffer(head, np.int64, layout.BINS, bins)[places]
    known = (words >> layout.BIN_SHIFT) == numbers
    brief = worked = NOTHING
    if known.any():
        words *= known
        brief = np.minimum((words >> layout.BRIEF_SHIFT & layout.BRIEF_MOST) / 1000, 1)
        worked = (words & layout.OTHERS_MOST) / 1000
    stamps = _stamps(slots, device, devices)
    stamps = stamps * (stamps <= now)
    busy = stamps[:, 0]
    _, asked, waited = stamps.max(axis=0, initial=0).tolist()
    return Activity(
        brief=brief,
        worked=worked,
        busy_since=tuple(busy[busy > max(0, now - STUCK_NS)].tolist()),
        asked_at=asked,
        waited_at=waited,
    )


@lru_cache(maxsize=2)
def _window(last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the bins of the window lie that ends with this millisecond, and which milliseconds they are."""
    numbers = np.arange(last - WINDOW + 1, last + 1)
    return numbers % layout.BINS, numbers


def _stamps(slots: bytes, device: int, devices: int) -> NDArray[np.int64]:
    """Each used slot's busy_since, asked_at and waited_at."""
    stride = layout.slot_stride(devices)
    count = len(slots) // stride
    place = (_STAMPS + device * ctypes.sizeof(layout.SlotDevice)) // 8
    return np.frombuffer(slots, np.int64, count * stride // 8).reshape(count, stride // 8)[:, place : place + 3]
