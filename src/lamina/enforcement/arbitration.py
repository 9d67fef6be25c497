"""The arbiter at work: reads the `usage` of all containers of a machine, decides, and writes into their `arbiter`.

A container can only harm itself with bad files: it is set aside, and tried again later. That
holds for time too. A usage file that holds up the arbiter, or that a process has changed the size, owner or mode of, is
left to a thread that restores it until no process has done so for a while. Its container has its own share meanwhile.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from lamina.enforcement.activity import Reading, activities
from lamina.enforcement.arbiter import Arbiter, Tenant
from lamina.enforcement.container_files import FileCalls, TakesLong, reason
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.memory_loans import Lender, Lending, MemoryHolder, age
from lamina.enforcement.open_container import OpenContainer
from lamina.errors import BadInput

CALM_S = 1.0
"""A usage file is restored until no process has changed it for this long."""
_AGAIN_S = 0.01
_NOTHING_LENT = Lending(allowed=0)
_Member = tuple[OpenContainer, int, Tenant]
"""A container on a GPU, and which of the container's GPUs that is."""
_Read = tuple[OpenContainer, Reading]
Report = Callable[[Path, str], None]
"""Called with the folder of a container and what is wrong with its files, as often as that is found."""


Failed = Callable[[str, Exception], None]
"""Called with the UUID of a GPU whose time could not be divided, as often as that happens."""


Confirm = Callable[[Path, str], Confirmation | None]
"""What the driver says of the container of a folder on the GPU with a UUID. None takes it at its word."""


def _take_at_its_word(folder: Path, uuid: str) -> None:
    """For containers that all belong to one user."""


def _say_nothing(what: object, problem: object) -> None: ...


Capacity = Callable[[str], int]
"""The memory of the GPU with a UUID in bytes; 0 where it is not known, and then none is lent."""


def _lend_none(uuid: str) -> int:
    return 0


class Arbitration:
    """Arbiters for all GPUs that the attended containers share, and lenders of their memory."""

    def __init__(
        self,
        *,
        low_priority_percent: float = 0,
        confirm: Confirm = _take_at_its_word,
        capacity: Capacity = _lend_none,
        report: Report = _say_nothing,
        failed: Failed = _say_nothing,
    ) -> None:
        self._calls = FileCalls()
        self._closed = threading.Event()
        self._containers: dict[Path, OpenContainer] = {}
        self._arbiters: dict[str, Arbiter] = {}
        self._low_priority_percent = low_priority_percent
        self._confirm = confirm
        self._capacity = capacity
        self._lenders: dict[str, Lender] = {}
        self._report = report
        self._failed = failed
        self._looked = False

    def attend(self, folders: Iterable[Path], writing: Callable[[Path], bool] = lambda folder: True) -> None:
        """These are the containers now. One whose files are not sound is left to its own share."""
        wanted = set(folders)
        known = list(self._containers.items())
        outdated = self._calls.make([(each, container.is_outdated) for each, container in known], self._late())
        for (folder, container), gone in zip(known, outdated, strict=True):
            if isinstance(gone, Exception):
                self._leave_out(folder, gone)
            elif gone or folder not in wanted:
                del self._containers[folder]
                self._calls.make([(folder, container.close)])
        for container in self._containers.values():
            container.neighbors.keep(self._containers)
        new = sorted(each for each in wanted - self._containers.keys() if not self._calls.is_left(each))
        opening = [(folder, partial(OpenContainer, folder, writing=writing(folder))) for folder in new]
        opened = self._calls.make(opening, lambda folder, container: self._restore(container))
        for folder, container in zip(new, opened, strict=True):
            if isinstance(container, OpenContainer):
                self._containers[folder] = container
            elif not isinstance(container.__cause__ or container, FileNotFoundError):  # it is being made or removed
                self._report(folder, _problem(container))

    @property
    def containers(self) -> Sequence[OpenContainer]:
        """Those whose files are sound, as they were last read."""
        return tuple(self._containers.values())

    @property
    def displaced(self) -> Mapping[str, Path]:
        """By GPU, the folder of the youngest container that has to keep borrowed memory on the host."""
        found: dict[str, OpenContainer] = {}
        for container in self._containers.values():
            for device, limit in enumerate(container.limits.devices):
                known = found.get(limit.uuid)
                if container.hosted(device) and (known is None or age(container) > age(known)):
                    found[limit.uuid] = container
        return {uuid: container.folder for uuid, container in found.items()}

    def tick(self, now: int) -> bool:
        """Decides once; `now` is CLOCK_MONOTONIC in ns. Returns whether anybody worked lately."""
        groups: dict[str, list[_Member]] = {}
        working = False
        if not self._looked:
            self.look_at_signals()
        self._looked = False
        self._observe(now)
        for container in self._containers.values():
            for device, tenant in enumerate(container.tenants):
                working = working or tenant.activity.active
                groups.setdefault(container.limits.devices[device].uuid, []).append((container, device, tenant))
        for uuid in self._arbiters.keys() - groups.keys():
            del self._arbiters[uuid]
            self._lenders.pop(uuid, None)
        for uuid, members in groups.items():
            try:
                self._lend(uuid, members, now)
                self._divide(uuid, members, now)
            except Exception as error:
                self._arbiters.pop(uuid, None)  # another one starts; until then each container has its own share
                for container, device, _ in members:
                    container.lend(device, _NOTHING_LENT)
                self._failed(uuid, error)
        return working

    def look_at_signals(self) -> None:
        """See which containers signal work. Called at a moment between two decisions that none of them can predict, so
        that they pay for what they signal; otherwise a decision looks itself."""
        self._looked = True
        known = list(self._containers.items())
        calls = [(folder, container.look_at_signal) for folder, container in known]
        for (folder, _), answer in zip(known, self._calls.make(calls, self._late()), strict=True):
            if isinstance(answer, Exception):
                self._leave_out(folder, answer)

    def _divide(self, uuid: str, members: Sequence[_Member], now: int) -> None:
        """Decide for the containers of one GPU."""
        arbiter = self._arbiters.setdefault(uuid, Arbiter(low_priority_percent=self._low_priority_percent))
        before = {tenant.name: container.refunded(device) for container, device, tenant in members if container.fresh}
        tenants = [
            structs.replace(tenant, confirmed=self._confirm(container.folder, uuid)) for container, _, tenant in members
        ]
        decisions = arbiter.tick(now, tenants, before)
        heeded = {name for decision in decisions.values() for name in decision.heeds}
        signals = {tenant.name: each.heeded(device) for each, device, tenant in members if tenant.name in heeded}
        for container, device, tenant in members:
            decision = decisions[tenant.name]
            container.heed(device, [signals[name] for name in decision.heeds])
            container.decide(device, decision, now)

    def _lend(self, uuid: str, members: Sequence[_Member], now: int) -> None:
        """Lend memory of one GPU, if one of its containers may borrow."""
        limits = [container.limits.devices[device] for container, device, _ in members]
        if not any(limit.request_bytes for limit in limits):
            if self._lenders.pop(uuid, None):
                for container, device, _ in members:
                    container.lend(device, _NOTHING_LENT)
            return
        lender = self._lenders.setdefault(uuid, Lender())
        said = [self._confirm(container.folder, uuid) for container, _, _ in members]
        holders = [
            MemoryHolder(
                name=container.name,
                guaranteed=limit.guaranteed,
                limit=limit.memory_bytes,
                held=container.held(device),
                made_at=container.made_at,
            )
            for (container, device, _), limit in zip(members, limits, strict=True)
        ]
        unlisted = next((each.unlisted for each in said if each is not None and each.unlisted is not None), None)
        lendings = lender.tick(now, self._capacity(uuid), confirmed(holders, said, lender), unlisted)
        for container, device, _ in members:
            container.lend(device, lendings[container.name])

    def _observe(self, now: int) -> None:
        """Read all usage files. A container whose file is not sound is left out until it is attended to again."""
        read: dict[int, list[_Read]] = {}
        known = list(self._containers.items())
        answers = self._calls.make([(folder, partial(_look, container)) for folder, container in known], self._late())
        for (folder, container), answer in zip(known, answers, strict=True):
            if isinstance(answer, Exception):
                self._leave_out(folder, answer)
                continue
            changes, reading = answer
            if changes:
                self._report(folder, f"a process changed {' and '.join(changes)}; it is restored")
                self._calls.leave(folder, partial(self._restore, self._containers.pop(folder)))
            elif reading is not None:
                read.setdefault(container.devices, []).append((container, reading))
        for devices, group in read.items():
            try:
                _understand(group, devices, now)
            except Exception:
                self._understand_each(group, devices, now)

    def _understand_each(self, group: Sequence[_Read], devices: int, now: int) -> None:
        """As all together, but what one file says stops no other."""
        for container, reading in group:
            try:
                _understand([(container, reading)], devices, now)
            except Exception as error:
                self._leave_out(container.folder, error)

    def _leave_out(self, folder: Path, error: Exception) -> None:
        """Leave a container to its own share until it is attended to again."""
        self._report(folder, _problem(error))
        container = self._containers.pop(folder)
        if not isinstance(error, TakesLong):
            self._calls.make([(folder, container.close)])

    def _late(self) -> Callable[[Hashable, Any], None]:
        """What is done with a container whose call took long, when it has returned."""
        known: dict[Hashable, OpenContainer] = {each.folder: each for each in self._containers.values()}
        return lambda folder, answer: self._restore(known[folder])

    def _restore(self, container: Any) -> None:
        """Restore the usage file of a container until its processes leave it alone, and close it. In a thread."""
        if not isinstance(container, OpenContainer):
            return  # it could not be opened
        try:
            changed_at = time.monotonic()
            while True:
                if container.restore():
                    changed_at = time.monotonic()
                if self._closed.wait(_AGAIN_S) or time.monotonic() - changed_at >= CALM_S:
                    return
        except (OSError, BadInput):
            pass  # it is cut off or gone, which the next one finds who opens it
        finally:
            container.close()

    def close(self) -> None:
        self._closed.set()
        self.attend(())
        self._calls.close()


def _look(container: OpenContainer) -> tuple[tuple[str, ...], Reading | None]:
    """What was changed of its usage file, and what that says now."""
    return container.changes(), container.read()


def confirmed(
    holders: Sequence[MemoryHolder], said: Sequence[Confirmation | None], lender: Lender
) -> Sequence[MemoryHolder]:
    """The holders with what the driver said of them: containers of one owner have one figure together."""
    left: dict[str, int] = {}
    found = []
    for holder, driver in zip(holders, said, strict=True):
        if driver is None:
            found.append(holder)
        elif driver.memory is None:
            found.append(structs.replace(holder, trusted=False))
        else:
            owner = driver.owner or holder.name
            listed = min(holder.counted, left.get(owner, driver.memory))
            left[owner] = left.get(owner, driver.memory) - listed
            loose = holder.counted - listed - lender.hosted(holder.name) if driver.processes else 0
            found.append(structs.replace(holder, listed=listed, unlisted=max(0, loose)))
    return found


def _understand(group: Sequence[_Read], devices: int, now: int) -> None:
    """Work out what the files say, all together, because that is quick."""
    found = activities([reading for _, reading in group], devices, now)
    for (container, _), activity in zip(group, found, strict=True):
        container.observe(activity, now)


def _problem(error: Exception) -> str:
    return f"its files cannot be used: {reason(error) if isinstance(error, OSError) else error}"
