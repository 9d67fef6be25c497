"""An NVML without a driver, for tests: GPUs that can be added, lost and struck by errors."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import structs

from lamina.core.mig import MigCard, Placed
from lamina.core.mig_cards import mig_card
from lamina.errors import BadInput, Outside
from lamina.ports.clock import Clock, SystemClock, within
from lamina.ports.nvml.protocol import GpuFacts, GpuProcess, GpuReading, MigInstanceFacts, XidEvent


def fake_gpus(count: int, *, name: str = "Tesla V100-SXM2-32GB", memory_mib: int = 32768) -> list[GpuFacts]:
    """`count` equal GPUs with UUIDs that are easy to tell apart."""
    return [GpuFacts(f"GPU-{i:08x}-0000-4000-8000-{i:012x}", i, name, memory_mib) for i in range(count)]


def connect(gpus: list[GpuFacts], pairs: Mapping[tuple[int, int], int], *, others: int = 10) -> list[GpuFacts]:
    """The GPUs with connections: these between the pairs of places, `others` between all the rest."""
    rows = [
        {each.uuid: pairs.get((min(i, j), max(i, j)), others) for j, each in enumerate(gpus) if i != j}
        for i in range(len(gpus))
    ]
    return [structs.replace(facts, links=row) for facts, row in zip(gpus, rows, strict=True)]


class FakeNvml:
    """`present` is what `gpus` answers. While `broken` is a sentence, every call fails with it."""

    def __init__(self, gpus: Iterable[GpuFacts] = (), clock: Clock | None = None, *, driver: str = "515.86.01") -> None:
        """`clock` limits how long `wait_event` waits; the machine's clock if it is None."""
        self.present = list(gpus)
        self._clock = clock or SystemClock()
        self.driver = driver
        self.cuda = (11, 7)
        self.broken = ""
        self.limiting = False
        """Whether this driver limits cgroups."""
        self.exclusive: set[str] = set()
        """GPUs on which one process at a time may have contexts."""
        self.memory_limits: dict[tuple[str, Path], int] = {}
        self.running: dict[str, tuple[GpuProcess, ...]] = {}
        self.working: dict[str, Mapping[int, float] | None] = {}
        """For which part of a GPU's time each process works; None where this driver does not measure it."""
        self.read: dict[str, GpuReading] = {}
        """What GPUs say of themselves; a GPU that is not named here says nothing but its place."""
        self.instances: dict[str, tuple[MigInstanceFacts, ...]] = {}
        self._events: asyncio.Queue[XidEvent] = asyncio.Queue()

    def strike(self, uuid: str, xid: int) -> None:
        """Let the driver report an error of one GPU; an empty UUID is an error that names none."""
        self._events.put_nowait(XidEvent(uuid, xid))

    async def driver_version(self) -> str:
        self._check()
        return self.driver

    async def cuda_version(self) -> tuple[int, int]:
        self._check()
        return self.cuda

    async def gpus(self) -> tuple[GpuFacts, ...]:
        self._check()
        return tuple(structs.replace(each, instances=self.instances.get(each.uuid, ())) for each in self.present)

    async def readings(self) -> Mapping[str, GpuReading]:
        self._check()
        silent = {facts.uuid: GpuReading(bus_id=f"00000000:{facts.index:02X}:00.0") for facts in self.present}
        return silent | self.read

    async def processes(self, uuid: str) -> tuple[GpuProcess, ...]:
        self._check()
        return self.running.get(uuid, ())

    async def work(self, uuid: str) -> Mapping[int, float] | None:
        self._check()
        return self.working.get(uuid, {})

    async def set_exclusive(self, uuid: str, on: bool) -> None:
        self._check()
        self._facts(uuid)
        (self.exclusive.add if on else self.exclusive.discard)(uuid)

    async def limits_memory(self, uuid: str, cgroup: Path) -> bool:
        self._check()
        return self.limiting and cgroup.is_dir()

    async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
        self._check()
        if not self.limiting or not cgroup.is_dir():
            raise Outside(f"NVML does not limit {cgroup}: Not Supported")
        if limit is None:
            self.memory_limits.pop((uuid, cgroup), None)
        else:
            self.memory_limits[uuid, cgroup] = limit

    async def mig_card(self, uuid: str) -> MigCard:
        self._check()
        card = mig_card(self._facts(uuid).pci_device)
        if card is None:
            raise Outside(f"NVML does not tell the MIG profiles of {uuid}: Not Supported")
        return card

    async def mig_instances(self, uuid: str) -> tuple[MigInstanceFacts, ...]:
        self._check()
        return self.instances.get(uuid, ())

    async def set_mig_mode(self, uuid: str, on: bool) -> bool:
        self._check()
        facts = self._facts(uuid)
        if facts.mig_enabled == on:
            return True
        if self.running.get(uuid) or self.instances.get(uuid):
            return False
        self.present = [structs.replace(each, mig_enabled=on) if each is facts else each for each in self.present]
        return True

    async def create_mig(self, uuid: str, place: Placed) -> MigInstanceFacts:
        card, there = await self.mig_card(uuid), self.instances.get(uuid, ())
        if not self._facts(uuid).mig_enabled:
            raise Outside(f"NVML makes no instance on {uuid}: Not Supported")
        try:
            card.check([*(Placed(each.profile, each.start) for each in there), place])
        except BadInput as refused:
            raise Outside(f"NVML makes no instance: Insufficient Resources ({refused})") from refused
        free = next(number for number in range(1, 15) if all(each.id != number for each in there))
        made = MigInstanceFacts(free, place.profile, place.start, f"MIG-{uuid[4:-2]}{free:02x}", free - 1)
        self.instances[uuid] = (*there, made)
        return made

    async def destroy_mig(self, uuid: str, instance: int) -> None:
        self._check()
        for each in self.instances.get(uuid, ()):
            if each.id == instance and self.running.get(each.uuid):
                raise Outside(f"NVML does not destroy instance {instance} of {uuid}: In use by another client")
        self.instances[uuid] = tuple(each for each in self.instances.get(uuid, ()) if each.id != instance)

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        self._check()
        try:
            return await within(self._clock, timeout_s, self._events.get())
        except TimeoutError:
            return None

    async def close(self) -> None:
        return None

    def _facts(self, uuid: str) -> GpuFacts:
        for facts in self.present:
            if facts.uuid == uuid:
                return facts
        raise Outside(f"NVML does not know {uuid}: Not Found")

    def _check(self) -> None:
        if self.broken:
            raise Outside(self.broken)
