"""Hold the turns on GPUs that are shared by time-slicing to the length that the configuration names.

What is set is noted on the disk first, so that it is given back when the configuration or the GPU's mode says so, over
restarts too. The driver forgets it at its own restart and nobody can ask it reliably, so it is told again now and then.
"""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from lamina.agent.offer import Offer
from lamina.errors import Outside
from lamina.model.gpus import Inventory, Mode
from lamina.model.sharing import Strategy, TimeSlice
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.time_slices import TimeSlices

log = logging.getLogger(__name__)

AGAIN_S = 60.0
"""After so long the driver is told again."""
RETRY_S = 10.0
"""And after so long when it refused."""

Tell = Callable[[str, str], Awaitable[None]]
"""Told the UUID of a GPU and why its turns do not have the length that they should have."""


class _Held(NamedTuple):
    length: TimeSlice
    failure: str
    due: float


class Slicer:
    """The time slices of one node. `wanted` is the length on GPUs that are shared by time-slicing; None leaves them."""

    def __init__(
        self,
        wanted: TimeSlice | None,
        *,
        door: TimeSlices,
        offer: Offer,
        path: Path,
        files: Files,
        clock: Clock,
        tell: Tell,
    ) -> None:
        """`path` is the note of the GPUs whose slices are not the driver's own any more."""
        self._wanted = wanted
        self._door = door
        self._offer = offer
        self._path = path
        self._files = files
        self._clock = clock
        self._tell = tell
        self._held: dict[str, _Held] = {}
        self._noted = _read(files.read(path))

    async def keep(self) -> None:
        """Set what has to be set now, and give back what is held no more. Raises Outside where the disk refuses."""
        inventory = self._offer.inventory.value
        if inventory is None:
            return
        wanted = dict.fromkeys(sliced(inventory), self._wanted) if self._wanted is not None else {}
        self._note(self._noted | wanted.keys())
        for uuid in sorted(self._noted & self._offer.gpus.keys()):
            await self._set(uuid, wanted.get(uuid, TimeSlice.DEFAULT))
        given_back = {uuid for uuid, held in self._held.items() if uuid not in wanted and not held.failure}
        self._note(self._noted - given_back)
        self._held = {uuid: held for uuid, held in self._held.items() if uuid in self._noted}
        self._offer.sliced({uuid: (held.length, held.failure) for uuid, held in self._held.items() if uuid in wanted})

    async def _set(self, uuid: str, length: TimeSlice) -> None:
        before, now = self._held.get(uuid), self._clock.monotonic()
        if before is not None and before.length is length and now < before.due:
            return
        failure = ""
        try:
            await self._door.set(uuid, length)
        except Outside as error:
            failure = str(error)
        if failure and (before is None or before.failure != failure):
            log.warning("%s", failure)
            await self._tell(uuid, failure)
        elif not failure and (before is None or before.failure or before.length is not length):
            log.info("Turns on %s have the length %s", uuid, length)
        self._held[uuid] = _Held(length, failure, now + (RETRY_S if failure else AGAIN_S))

    def _note(self, uuids: set[str]) -> None:
        if uuids != self._noted:
            self._files.write(self._path, msgspec.json.encode(sorted(uuids)))
            self._noted = set(uuids)


def sliced(inventory: Inventory) -> list[str]:
    """The GPUs that are shared by time-slicing, or are to be once they are used."""
    resources = {each.resource for each in inventory.plain if each.sharing is Strategy.TIME_SLICING}
    return [
        gpu.uuid
        for gpu in inventory.gpus
        if gpu.mode is Mode.TIMESLICE or (gpu.mode is None and gpu.plain in resources)
    ]


def _read(content: bytes | None) -> set[str]:
    try:
        return set(msgspec.json.decode(content or b"[]", type=list[str]))
    except msgspec.DecodeError as error:
        log.warning("The note of time slices is not understood: %s", error)
        return set()


def failures_on_node(recorder: EventRecorder, node: str) -> Tell:
    """Record on the node what its GPUs refuse."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def tell(uuid: str, failure: str) -> None:
        await recorder.record(NODES, meta, "TimeSliceFailed", f"{uuid}: {failure}", warning=True)

    return tell


async def slicing(slicer: Slicer, clock: Clock, *, poll_s: float) -> None:
    """Keep for ever."""
    while True:
        try:
            await slicer.keep()
        except Outside as error:
            log.warning("Time slices are not looked after: %s", error)
        await clock.sleep(poll_s)
