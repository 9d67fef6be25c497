"""What the driver says of the work of containers whose processes have the same PIDs as this one: of `lamina run`.

An agent asks NVML by `agent.limits.driver_reports`, because its containers have PIDs of their own. So have containers
of Docker, which runs may limit too: these are taken at their word.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lamina.enforcement.driver import NvmlLibrary
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.open_container import OpenContainer
from lamina.enforcement.process_memory import slot_processes, slots_of
from lamina.errors import Outside

LOOK_NS = 500_000_000


class DriverWork:
    """Asks NVML twice a second about each GPU that several containers have. Where NVML does not answer, containers are
    taken at their word."""

    def __init__(self, driver: Path) -> None:
        self._nvml: NvmlLibrary | None = None
        self._asked_at = 0
        self._namespace = Path("/proc/self/ns/pid").stat().st_ino
        self._said: dict[tuple[Path, str], Confirmation] = {}
        with suppress(Outside):
            self._nvml = NvmlLibrary(driver)

    def look(self, containers: Sequence[OpenContainer], now: int) -> None:
        """Ask if it is time to. `now` is CLOCK_MONOTONIC in ns."""
        if self._nvml is None or now - self._asked_at < LOOK_NS:
            return
        self._asked_at, self._said = now, {}
        sharing: dict[str, list[OpenContainer]] = {}
        for container in containers:
            for limit in container.limits.devices:
                sharing.setdefault(limit.uuid, []).append(container)
        for uuid, group in sharing.items():
            with suppress(Outside):
                work = self._nvml.work(uuid, time.time()) if len(group) > 1 else None
                for container in group if work is not None else ():
                    if slots_of(container.slots, container.devices, self._namespace):
                        self._said[container.folder, uuid] = _confirmation(container, work or {}, now)

    def confirmation(self, folder: Path, uuid: str) -> Confirmation | None:
        """What is known of the container of this folder."""
        return self._said.get((folder, uuid))

    def close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None


def _confirmation(container: OpenContainer, work: Mapping[int, float], now: int) -> Confirmation:
    pids = {each.pid for each in slot_processes(container.slots, container.devices).values()}
    return Confirmation(len(pids), min(1.0, sum(work.get(pid, 0.0) for pid in pids)), asked_at=now)
