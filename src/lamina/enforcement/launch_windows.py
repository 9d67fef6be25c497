"""Whether containers that keep one GPU busy launch in windows, one after the other. Pure but for what it remembers.

A GPU does nothing for a moment whenever it changes between processes, for 0.15 ms on an H200. Programs that wait for
short kernels make it change after each one, so two of them may get half of its time together. In windows each launches
for some milliseconds, and in every period the GPU changes once to each.

In a window all time between two events is the container's own. So nothing has to be estimated, and how long time slices
are does not matter.

A program that computes on the CPU between two kernels leaves most of a window unused, and without windows others use
the GPU meanwhile. So windows are tried, and kept only as long as containers use them, or at least get more work done
than without them, and none gets much less.

Example: two containers with 50 % launch kernels of 0.1 ms, one of them ten at a time, the other one by one. They get 49
and 21 %. Windows from 0 to 10 and from 10 to 20 ms of each period are tried; after 0.4 seconds they got 49 and 43 %, so
the windows stay.
"""

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from lamina.enforcement import layout
from lamina.enforcement.container_files import read_file

PERIOD_US = 20_000
"""WINDOW_PERIOD_NS of native/facade/compute/launch_window.h."""
MIN_US = 1000
"""The length of the shortest window."""
SHORT_NS = 3_000_000
"""Longer launches do not end with a window. Next to them there are no windows."""
OCCUPIED, STILL_OCCUPIED = 0.7, 0.5
"""For which part of the time a container has work, to begin launching in windows and to go on."""
OCCUPIED_OVER_NS = 100_000_000
LOOK_NS = 300_000_000
"""Over what work is compared. Windows that do not help for this long end."""
SETTLE_NS = 100_000_000
"""How long containers take to work as windows have them."""
USED, GAIN = 0.85, 1.03
"""Which part of what they may use containers have to get together in windows, or how much more than without them."""
LEFT = 0.8
"""Which part of its work each has to get, at least. What it got without windows is only estimated."""
LACKS, LACK_NS = 0.05, 1_000_000_000
"""Windows are tried where a container gets so much less than it may use for so long, as a part of the GPU's time.
Elsewhere they would only cut in two what it does at once, such as a request."""
UNCERTAIN_NS = 500_000
"""They are also tried where its account holds a container back and is uncertain: the time of a change of the GPU is a
large part of that of a launch shorter than this, and is measured as its work."""
AGAIN_NS = 30_000_000_000
"""After so long, windows end, to see what all do without them."""
PAUSE_NS, MAX_PAUSE_NS = 10_000_000_000, 300_000_000_000
"""When windows that did not help are tried again, the first time and after some."""
MAX_FAILED = 64


class Launcher(Struct, frozen=True, kw_only=True):
    """A container that works on the GPU. The figures in ns are its own, and may be anything."""

    name: str
    rate: float
    """What it may use, as a part of the GPU's time."""
    launch_ns: int
    """What a launch takes on average; 0 if it has launched nothing, or if it uses
    several GPUs, where launches may wait for each other."""
    occupied_ns: int
    """For how long its processes had work that they had not seen to be done, ever."""
    work_ns: int
    """What the GPU did for it, ever."""
    waits: bool
    """Whether it lately waited for its share."""


class LaunchWindows:
    """The windows of one GPU's containers."""

    def __init__(self) -> None:
        self._past: deque[tuple[int, Mapping[str, Launcher]]] = deque()
        self._names: tuple[str, ...] = ()
        self._since = 0
        self._helped = 0
        self._open = False
        self._lack = 0
        """Since when windows may help; 0 if they do not."""
        self._before: Mapping[str, float] = {}
        self._next = 0
        self._pause = PAUSE_NS
        self._failed: dict[tuple[str, ...], tuple[int, int]] = {}
        """By containers whose windows did not help: when to try again, and the pause after that."""

    def tick(self, now: int, launchers: Sequence[Launcher]) -> Mapping[str, int]:
        """By container, the word of its window from `now` (ns) on; see launch_window.h. The others launch always."""
        self._past.append((now, {each.name: each for each in launchers}))
        while self._past[0][0] < now - LOOK_NS:
            self._past.popleft()
        earlier = next((at, then) for at, then in self._past if at >= now - OCCUPIED_OVER_NS)
        busy = [each for each in launchers if self._is_busy(each, now, *earlier)]
        if not all(0 < each.launch_ns <= SHORT_NS for each in busy):
            busy = []
        names = tuple(each.name for each in busy)
        if names != self._names:
            self._names = names
            self._next, self._pause = self._failed.get(names, (now, PAUSE_NS))
            self._change(now, opened=False)
        words = words_of(busy)
        if words:
            self._step(now, busy)
        return words if self._open else {}

    def _is_busy(self, each: Launcher, now: int, at: int, then: Mapping[str, Launcher]) -> bool:
        """Whether a container has work nearly always; `then` is what was known at an earlier time `at`."""
        if each.waits or each.name not in then or at == now:
            return each.waits
        part = (each.occupied_ns - then[each.name].occupied_ns) / (now - at)
        return part > (STILL_OCCUPIED if each.name in self._names else OCCUPIED)

    def _step(self, now: int, busy: Sequence[Launcher]) -> None:
        """Begin with windows, or end them."""
        age = now - self._since
        if len(self._past) < 2:  # the last decision is long ago
            return
        if not self._open:
            if age >= LOOK_NS:
                self._before = self._work()
                self._lack = (self._lack or now) if self._may_help(self._before, now, busy) else 0
                if self._lack and now >= max(self._next, self._lack + LACK_NS):
                    self._change(now, opened=True)
        elif age >= SETTLE_NS + LOOK_NS:
            if self._helps(self._work(), busy):
                self._helped, self._pause = now, PAUSE_NS
                self._failed.pop(self._names, None)
            elif now - self._helped >= LOOK_NS:
                self._fail(now)
            if age > AGAIN_NS:
                self._change(now, opened=False)
                self._lack = now - LACK_NS

    def _may_help(self, work: Mapping[str, float], now: int, busy: Sequence[Launcher]) -> bool:
        """Whether a container gets less than it may use and could, because the GPU changes between them too often; or
        may do so, because its account holds it back and includes such changes."""
        (at, then), total = self._past[0], sum(each.rate for each in busy)
        scale = 1 / max(1.0, total)
        for each in busy:
            part = 1.0 if each.waits else (each.occupied_ns - then[each.name].occupied_ns) / max(1, now - at)
            lacks = min(each.rate * scale, part - (total - each.rate) * scale) - work[each.name]
            if lacks > LACKS or (each.waits and each.launch_ns < UNCERTAIN_NS):
                return True
        return False

    def _fail(self, now: int) -> None:
        """Windows did not help these containers, and will be tried again after a longer pause."""
        self._next, self._pause = now + self._pause, min(2 * self._pause, MAX_PAUSE_NS)
        if len(self._failed) >= MAX_FAILED:
            del self._failed[next(iter(self._failed))]
        self._failed[self._names] = self._next, self._pause
        self._change(now, opened=False)

    def _helps(self, work: Mapping[str, float], busy: Sequence[Launcher]) -> bool:
        """Whether windows are better than what was before."""
        if any(work[each.name] < LEFT * min(each.rate, self._before[each.name]) for each in busy):
            return False
        together, before = (sum(part[each.name] for each in busy) for part in (work, self._before))
        return together >= USED * min(1.0, sum(each.rate for each in busy)) or together > GAIN * before

    def _change(self, now: int, *, opened: bool) -> None:
        self._open, self._since, self._helped, self._lack = opened, now, now + SETTLE_NS + LOOK_NS, 0

    def _work(self) -> dict[str, float]:
        """Lately, as a part of the GPU's time."""
        (first, before), (last, after) = self._past[0], self._past[-1]
        return {
            name: (after[name].work_ns - before[name].work_ns) / (last - first) for name in after.keys() & before.keys()
        }


def words_of(busy: Sequence[Launcher]) -> dict[str, int]:
    """Windows as long as what each may use, which fill the period. Empty if one would be too short for its launches."""
    total = sum(each.rate for each in busy)
    if len(busy) < 2 or len(busy) * MIN_US > PERIOD_US or total <= 0:
        return {}
    lengths = [max(MIN_US, PERIOD_US * each.rate / total) for each in busy]
    scale, found, begin = PERIOD_US / sum(lengths), {}, 0.0
    for each, length in zip(busy, lengths, strict=True):
        if 2 * each.launch_ns > 1000 * length * scale:
            return {}
        end = begin + length * scale
        found[each.name] = round(begin) | round(end) << 32
        begin = end
    return found


def length_us(word: int) -> int:
    """The length of the window of a word; 0 for no window."""
    begin, end = word & 0xFFFFFFFF, word >> 32
    return end - begin if begin < end <= PERIOD_US else 0


_US = 1e6


def read_window_lengths(path: Path) -> tuple[float, ...]:
    """For each GPU of the container, for how many seconds of each period it begins launches; 0 where it always may.

    Empty if the file cannot be read.
    """
    size = ctypes.sizeof(layout.ArbiterFile)
    try:
        content = read_file(path, size)
    except OSError:
        return ()
    if len(content) < size:
        return ()
    arbiter = layout.ArbiterFile.from_buffer_copy(content)
    count = min(arbiter.device_count, layout.MAX_DEVICES)
    return tuple(length_us(arbiter.lendings[place].window) / _US for place in range(count))
