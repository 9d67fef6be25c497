"""What a container's processes do on its GPUs, from its `usage`. The tenant writes that file: a lie in it can only be
about itself, and nothing here believes more than a moment's worth of it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from lamina.enforcement import layout
from lamina.enforcement.usage_arrays import bins, charges, stamps

WINDOW = 120
"""Milliseconds that are looked at; the bins go back a little farther."""
STUCK_NS = 2_000_000_000
"""Work on the GPU for longer than this without a sign of its process may be that of one that was killed."""
MAX_PROCESSES = 128
"""Processes of one container whose present work is looked at. The container says how many it has, and must not decide
how long reading takes. What further processes have finished counts too, since all report it in the same bins."""

Fractions = NDArray[np.float64]
NOTHING: Fractions = np.zeros(WINDOW)
NOTHING.flags.writeable = False


class Activity(Struct, frozen=True, kw_only=True):
    """One container on one GPU. Times are CLOCK_MONOTONIC in ns.

    `brief` and `worked` have for each of the last WINDOW milliseconds, the present one last, how much of it the
    container's processes had work on the GPU, added up over processes: work that had the GPU to itself, and other
    work. `unfinished` has how many processes had work in each of them that they have now still.
    """

    brief: Fractions = NOTHING
    worked: Fractions = NOTHING
    unfinished: Fractions = NOTHING
    asked_at: int = 0
    waited_at: int = 0
    charged_ns: int = 0
    """What it was charged, ever, by its own account."""

    @property
    def busy(self) -> bool:
        """Whether a process has work now."""
        return self.unfinished is not NOTHING

    @property
    def active(self) -> bool:
        """Whether there was any work in the window."""
        return self.busy or self.brief is not NOTHING or self.worked is not NOTHING


def slots_read(head: bytes) -> int:
    """Slots to read, by the beginning of a usage file: those that were ever used, but no more than MAX_PROCESSES."""
    start = layout.UsageFile.slots_used.offset
    return min(int.from_bytes(head[start : start + 4], "little"), MAX_PROCESSES)


class Reading(NamedTuple):
    """What was read of one usage file: its beginning, and its first slots."""

    head: bytes
    slots: bytes


def activities(readings: Sequence[Reading], devices: int, now: int) -> list[list[Activity]]:
    """The activity of several containers on each of their devices, of which all have as many.

    They are computed together, because NumPy takes longer to be called than to compute one of them.
    """
    brief, worked, known = _bins(readings, devices, now)
    charged = charges(b"".join(reading.head for reading in readings), devices).tolist()
    unfinished, asked_at, waited_at = _works_now(readings, devices, now)
    at_work: list[bool] = (unfinished.max(axis=1) > 0).tolist()
    found = [
        Activity(
            brief=brief[i] if known[i] else NOTHING,
            worked=worked[i] if known[i] else NOTHING,
            unfinished=unfinished[i] if at_work[i] else NOTHING,
            asked_at=asked_at[i],
            waited_at=waited_at[i],
            charged_ns=charged[i],
        )
        for i in range(len(readings) * devices)
    ]
    return [found[i : i + devices] for i in range(0, len(found), devices)]


def _bins(readings: Sequence[Reading], devices: int, now: int) -> tuple[Fractions, Fractions, list[bool]]:
    """Brief and other work in each millisecond, and whether there was any; by container and device."""
    places, numbers = _window(now // layout.BIN_NS)
    words = bins(b"".join(reading.head for reading in readings), devices)[:, places]
    known: NDArray[np.bool_] = np.equal(words >> layout.BIN_SHIFT, numbers)
    there: list[bool] = known.max(axis=1).tolist()
    words *= known
    brief = np.minimum((words >> layout.BRIEF_SHIFT & layout.MAX_BRIEF) / 1000, 1)
    worked = (words & layout.MAX_OTHERS) / 1000
    return brief, worked, there


def _works_now(readings: Sequence[Reading], devices: int, now: int) -> tuple[Fractions, list[int], list[int]]:
    """How many processes had work in each millisecond that they have still, and when one last asked for time and last
    waited for it; by container and device."""
    rows = len(readings) * devices
    read = [stamps(reading.slots, devices) for reading in readings]
    used = np.array([each.shape[2] for each in read])
    containers = np.flatnonzero(used)
    if not len(containers):
        return np.zeros((rows, WINDOW)), [0] * rows, [0] * rows
    past = np.concatenate(read, axis=2)
    past *= past <= now
    starts = (np.cumsum(used) - used)[containers]
    latest = np.zeros((2, len(readings), devices), np.int64)
    latest[:, containers] = np.maximum.reduceat(past[1:], starts, axis=2).transpose(0, 2, 1)
    device, slot = np.nonzero(past[0] > max(0, now - STUCK_NS))
    milliseconds = now // layout.BIN_NS - past[0, device, slot] // layout.BIN_NS
    row = np.repeat(np.arange(len(readings)), used)[slot] * devices + device
    begun = np.bincount(row * WINDOW + np.maximum(0, WINDOW - 1 - milliseconds), minlength=rows * WINDOW)
    unfinished = begun.reshape(rows, WINDOW).cumsum(axis=1).astype(np.float64)
    asked_at, waited_at = np.maximum(latest, 0).reshape(2, rows).tolist()
    return unfinished, asked_at, waited_at


@lru_cache(maxsize=2)
def _window(last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the bins of the window lie that ends with this millisecond, and which milliseconds they are."""
    numbers = np.arange(last - WINDOW + 1, last + 1)
    return numbers % layout.BINS, numbers
