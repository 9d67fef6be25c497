"""The arbiter at work: reads the `usage` of all containers of a machine, decides, and writes into their `arbiter`.

An arbiter file belongs to whoever decides and containers only read it, so it is mapped; a usage file belongs to its
tenants, who may cut it off at any time, so it is read.
"""

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from lamina.enforcement import layout
from lamina.enforcement.activity import activity, head_bytes, slots_used
from lamina.enforcement.arbiter import RECENT_NS, Arbiter, Decision, Tenant
from lamina.enforcement.files import ARBITER, LIMITS, USAGE
from lamina.enforcement.limits import Limits, read_limits
from lamina.errors import LaminaError

_PPM = 1_000_000


class _Container:
    """The open files of one container. Raises OSError and LaminaError where they are not sound."""

    def __init__(self, folder: Path, *, writing: bool) -> None:
        self.name = str(folder)
        self.limits: Limits = read_limits(folder / LIMITS)
        self._before: tuple[bytes, bytes] = b"", b""
        self._resting: list[Tenant] = []  # when nothing happened and nothing in the file changes
        self._decided: dict[int, Decision] = {}
        self._mapped: mmap.mmap | None = None
        self._decisions: layout.Arbiter | None = None
        self.inode = _inode(folder)
        self._usage = os.open(folder / USAGE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if writing:
                with (folder / ARBITER).open("r+b") as file:
                    self._mapped = mmap.mmap(file.fileno(), ctypes.sizeof(layout.Arbiter))
                self._decisions = layout.Arbiter.from_buffer(self._mapped)
        except (OSError, ValueError):
            os.close(self._usage)
            raise

    def tenants(self, now: int) -> list[Tenant]:
        """One for each of its GPUs; none when its tenants spoilt the file."""
        count = len(self.limits.devices)
        head = os.pread(self._usage, head_bytes(count), 0)
        wanted = slots_used(head) * layout.slot_stride(count)
        slots = os.pread(self._usage, wanted, ctypes.sizeof(layout.Usage))
        if len(head) < head_bytes(count) or len(slots) < wanted:
            return []
        if self._resting and self._before == (head, slots):
            return self._resting
        found = [
            Tenant(
                name=self.name,
                share=limit.cores_percent / 100,
                policy=limit.compute_policy,
                priority=self.limits.priority,
                activity=activity(head, slots, device, count, now),
            )
            for device, limit in enumerate(self.limits.devices)
        ]
        self._before = head, slots
        lately = any(one.activity.seen or one.activity.asked_at + RECENT_NS > now for one in found)
        self._resting = [] if lately else found
        return found

    @property
    def fresh(self) -> bool:
        """Nothing was decided about it here."""
        return not self._decided

    def refunded(self, device: int) -> int:
        return int(self._decisions.devices[device].refund_ns) if self._decisions else 0

    def decide(self, device: int, decision: Decision, now: int) -> None:
        """Each word is written in one step; the heartbeat last."""
        if self._decisions is None:
            return
        if self._decided.get(device) != decision:
            self._decided[device] = decision
            word = self._decisions.devices[device]
            word.closed = int(decision.closed)
            word.watched = int(decision.watched)
            word.attention = int(decision.closed or decision.watched)
            word.rate_ppm = round(decision.rate * _PPM)
            word.refund_ns = decision.refund_ns
        self._decisions.heartbeat = now

    def close(self) -> None:
        os.close(self._usage)
        self._decisions = None
        self._mapped = None


def _inode(folder: Path) -> int:
    """Which usage file it is: a container that starts anew gets another one. 0 when there is none."""
    try:
        return (folder / USAGE).stat().st_ino
    except OSError:
        return 0


class Arbitration:
    """Arbiters for all GPUs that the attended containers share."""

    def __init__(self, *, low_priority_percent: float = 0) -> None:
        self._containers: dict[Path, _Container] = {}
        self._arbiters: dict[str, Arbiter] = {}
        self._low_priority_percent = low_priority_percent

    def attend(self, folders: Iterable[Path], writing: Callable[[Path], bool] = lambda folder: True) -> None:
        """These are the containers now. One whose files are not sound is left to its own share."""
        wanted = set(folders)
        for folder, container in list(self._containers.items()):
            if folder not in wanted or _inode(folder) != container.inode:
                self._containers.pop(folder).close()
        for folder in wanted - self._containers.keys():
            try:
                self._containers[folder] = _Container(folder, writing=writing(folder))
            except (OSError, ValueError, LaminaError):
                continue

    def tick(self, now: int) -> bool:
        """Decides once; `now` is CLOCK_MONOTONIC in ns. Returns whether anybody worked lately."""
        groups: dict[str, list[tuple[_Container, int, Tenant]]] = {}
        working = False
        for container in self._containers.values():
            for device, tenant in enumerate(container.tenants(now)):
                working = working or tenant.activity.seen
                groups.setdefault(container.limits.devices[device].uuid, []).append((container, device, tenant))
        for uuid in self._arbiters.keys() - groups.keys():
            del self._arbiters[uuid]
        for uuid, members in groups.items():
            arbiter = self._arbiters.setdefault(uuid, Arbiter(low_priority_percent=self._low_priority_percent))
            before = {
                tenant.name: container.refunded(device) for container, device, tenant in members if container.fresh
            }
            decisions = arbiter.tick(now, [tenant for _, _, tenant in members], before)
            for container, device, tenant in members:
                container.decide(device, decisions[tenant.name], now)
        return working

    def close(self) -> None:
        self.attend(())
