"""One container's files, held open by the arbiter.

The arbiter file belongs to the arbiter and containers only read it, so it is mapped; the usage and signal files belong
to its tenants, who may cut them off at any time, so they are read.
"""

import ctypes
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.activity import Activity, Reading, slots_read
from lamina.enforcement.arbiter import RECENT_NS, Decision, Tenant
from lamina.enforcement.container_files import open_file
from lamina.enforcement.files import ARBITER, LIMITS, SIGNAL, USAGE
from lamina.enforcement.limits import Limits, read_limits
from lamina.enforcement.live_limits import guarantee, resize
from lamina.enforcement.memory_loans import Lending
from lamina.enforcement.neighbors import HeededNeighbor, Neighbors
from lamina.enforcement.open_usage import OpenUsage
from lamina.enforcement.usage_arrays import head_bytes, held, hosted
from lamina.errors import BadInput

_PPM = 1_000_000
ASK_NS = 60_000_000_000
"""How often a container whose time is not measured is asked whether it uses a GPU."""
_LAUNCH_NS = layout.UsageDevice.compute.offset + layout.UsageCompute.launch_ns.offset
_OCCUPIED_NS = layout.UsageDevice.compute.offset + layout.UsageCompute.occupied_ns.offset
_PAUSE_NS = layout.UsageDevice.compute.offset + layout.UsageCompute.pause_ns.offset
_USED_AT = layout.UsageDevice.compute.offset + layout.UsageCompute.used_at.offset


class OpenContainer:
    """Raises OSError and LaminaError where its files are not sound. With `writing` they are this process's to keep."""

    def __init__(self, folder: Path, *, writing: bool) -> None:
        self.folder = folder
        self.name = str(folder)
        self._limits_inode = _inode(folder / LIMITS)
        self.limits: Limits = read_limits(folder / LIMITS)
        self._before: tuple[bytes, bytes] = b"", b""
        self._resting = False  # when nothing happened; until something in the file changes
        self.tenants: list[Tenant] = []
        """One for each of its GPUs, as it was last observed."""
        self._decided: dict[int, Decision] = {}
        self._lent: dict[int, Lending] = {}
        self._heeded: dict[int, list[int]] = {}
        self._mapped: mmap.mmap | None = None
        self._decisions: layout.ArbiterFile | None = None
        self._working: Sequence[int] = (0,) * layout.MAX_DEVICES
        self.neighbors = Neighbors(folder)
        self._usage = OpenUsage(folder / USAGE, layout.usage_bytes(len(self.limits.devices)))
        try:
            self._signal = OpenUsage(folder / SIGNAL, ctypes.sizeof(layout.SignalFile))
        except OSError:
            self._usage.close()
            raise
        try:
            if writing:
                self._usage.take_over()
                self._signal.take_over()
                self._map(folder / ARBITER)
                self.neighbors.clear()
        except (OSError, ValueError):
            self.close()
            raise

    def is_outdated(self) -> bool:
        """Whether its files are others than those that are open: it started again, or was resized."""
        return (_inode(self.folder / USAGE), _inode(self.folder / LIMITS)) != (self._usage.inode, self._limits_inode)

    def _map(self, path: Path) -> None:
        file = open_file(path, os.O_RDWR)
        try:
            self._mapped = mmap.mmap(file, ctypes.sizeof(layout.ArbiterFile))
        finally:
            os.close(file)
        self._decisions = layout.ArbiterFile.from_buffer(self._mapped)
        for place, limit in enumerate(self.limits.devices):
            resize(self._decisions.devices[place], limit)
            guarantee(self._decisions.lendings[place], limit)

    def changes(self) -> tuple[str, ...]:
        """What its tenants have changed of their files that is to be restored here."""
        if self._decisions is None:
            return ()
        changed = ((USAGE, self._usage.changes()), (SIGNAL, self._signal.changes()))
        return tuple(f"the {' and '.join(what)} of its {name} file" for name, what in changed if what)

    def restore(self) -> bool:
        """Undo that. Returns whether there was something."""
        return self._decisions is not None and any([self._usage.restore(), self._signal.restore()])

    @property
    def devices(self) -> int:
        return len(self.limits.devices)

    def read(self) -> Reading | None:
        """What its usage file says now; None if it rests, and says what it said before.

        Raises OSError, and BadInput where a process has cut off the file.
        """
        size = head_bytes(self.devices)
        head = self._usage.read(size, 0)
        wanted = slots_read(head) * layout.slot_stride(self.devices)
        slots = self._usage.read(wanted, ctypes.sizeof(layout.UsageFile))
        if len(head) < size or len(slots) < wanted:
            raise BadInput("a process has cut off its usage file")
        if self._resting and self._before == (head, slots):
            return None
        self._before = head, slots
        return Reading(head, slots)

    def look_at_signal(self) -> None:
        """Read whether it signals work now. Where it is cut off it signals none."""
        size = ctypes.sizeof(layout.SignalFile)
        self._working = layout.SignalFile.from_buffer_copy(self._signal.read(size, 0).ljust(size, b"\0")).working

    def observe(self, activities: Sequence[Activity], now: int) -> None:
        """What was read comes to these activities, one on each of its GPUs."""
        self.tenants = [
            Tenant(
                name=self.name,
                share=limit.cores_percent / 100,
                most=(limit.most_percent or 100) / 100,
                policy=limit.compute_policy if limit.compute_policy.by_time else ComputePolicy.NONE,
                priority=self.limits.priority,
                activity=activity,
                launch_ns=self._word(device, _LAUNCH_NS),
                occupied_ns=self._word(device, _OCCUPIED_NS),
                gpus=self.devices,
                signals=self._working[device] != 0,
                pause_ns=self._word(device, _PAUSE_NS),
            )
            for device, (limit, activity) in enumerate(zip(self.limits.devices, activities, strict=True))
        ]
        self._clear_signals(activities, now)
        lately = any(one.active or one.asked_at + RECENT_NS > now for one in activities)
        self._resting = not lately

    def _clear_signals(self, activities: Sequence[Activity], now: int) -> None:
        """A process that was killed has left its bit: no process has work now."""
        for device, activity in enumerate(activities):
            if self._working[device] and not activity.busy and activity.asked_at + RECENT_NS < now and self._decisions:
                self._signal.write(bytes(4), layout.SignalFile.working.offset + 4 * device)

    def _word(self, device: int, offset: int) -> int:
        """A word of its usage file about one of its GPUs, as it was last read."""
        place = layout.UsageFile.devices.offset + device * ctypes.sizeof(layout.UsageDevice) + offset
        return int.from_bytes(self._before[0][place : place + 8], "little")

    def heed(self, device: int, heeded: Sequence[HeededNeighbor]) -> None:
        """Let the work of these come first on one of its GPUs."""
        if self._decisions is None:
            return
        words = self.neighbors.words(heeded)
        if self._heeded.get(device) != words:
            self._heeded[device] = words
            record = self._decisions.heeded[device].signals
            for place, word in enumerate((words + [0] * layout.HEEDED)[: layout.HEEDED]):
                record[place] = word

    def heeded(self, device: int) -> HeededNeighbor:
        """For others that are to let its work come first."""
        return HeededNeighbor(self.folder, device, self._word(device, _PAUSE_NS))

    @property
    def fresh(self) -> bool:
        """Nothing was decided about it here."""
        return not self._decided

    @property
    def figure_requests(self) -> int:
        """How often its processes asked for their figures; 0 where they get no answer here."""
        start = layout.UsageFile.figure_requests.offset
        return int.from_bytes(self._before[0][start : start + 8], "little") if self._decisions else 0

    @property
    def slots(self) -> bytes:
        """The first slots of its usage file, as they were last read."""
        return self._before[1]

    def is_ready_for_requests(self, now: int) -> None:
        """Let its processes know that requests are answered now; `now` is CLOCK_MONOTONIC in ns."""
        if self._decisions is not None:
            self._decisions.figures_at = now

    def tell_figures(self, device: int, words: Mapping[int, int]) -> None:
        """What processes use of a GPU by the driver's figures: a word for each slot."""
        if self._decisions is not None:
            for slot, word in words.items():
                self._decisions.figures[device].slots[slot] = word

    def refunded(self, device: int) -> int:
        return int(self._decisions.devices[device].refund_ns) if self._decisions else 0

    @property
    def made_at(self) -> int:
        """When its files were made, in ns of CLOCK_MONOTONIC."""
        return int(self._decisions.made_at) if self._decisions else 0

    def held(self, device: int) -> int:
        """Bytes of a GPU that its processes say they hold."""
        return int(held(self._before[1], self.devices)[device])

    def lend(self, device: int, lending: Lending) -> None:
        """Each word is written in one step. They count from the next heartbeat on."""
        if self._decisions is None:
            return
        if self._lent.get(device) != lending:
            self._lent[device] = lending
            record = self._decisions.lendings[device]
            record.allowed_bytes = lending.allowed
            record.host_bytes = lending.host
            record.neighbors_borrow = int(lending.neighbors_borrow)

    def hosted(self, device: int) -> int:
        """Bytes of a GPU's memory that it has to keep on the host, as was decided last."""
        lent = self._lent.get(device)
        return lent.host if lent is not None else 0

    def _moves(self, device: int) -> bool:
        """Whether its processes have to move memory between GPU and host."""
        lent = self._lent.get(device)
        return lent is not None and lent.host != int(hosted(self._before[1], self.devices)[device])

    def _asks(self, device: int, now: int) -> bool:
        """Whether its next launch is to say that the GPU is used, because its time is not measured. One
        of which no process has begun is not asked: that would cost its programs time at every launch."""
        if self.limits.devices[device].compute_policy.by_time:
            return False
        return 0 < self._word(device, _USED_AT) <= now - ASK_NS

    def decide(self, device: int, decision: Decision, now: int) -> None:
        """Each word is written in one step; the heartbeat last."""
        if self._decisions is None:
            return
        if self._decided.get(device) != decision:
            self._decided[device] = decision
            word = self._decisions.devices[device]
            word.closed = int(decision.closed)
            word.watched = int(decision.watched)
            word.rate_ppm = round(decision.rate * _PPM)
            word.refund_ns = decision.refund_ns
            word.blocked_ns = decision.blocked_ns
            self._decisions.lendings[device].window = decision.window
            self._decisions.lendings[device].turns = decision.turns
        attention = decision.closed or decision.watched or self._moves(device) or self._asks(device, now)
        self._decisions.devices[device].attention = int(attention)
        self._decisions.heartbeat = now

    def close(self) -> None:
        self._usage.close()
        self._signal.close()
        self._decisions = None
        self._mapped = None


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
