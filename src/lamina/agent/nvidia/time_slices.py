"""Sets the length of time slices on GPUs shared by time-slicing, as the configuration says.

A ResourceClaim that has a whole GPU may have another length for it, as long as it is prepared.

The GPUs are noted on disk before their slices are changed, so that the default is restored when the configuration or
the mode of the GPU changes, across restarts too. The driver forgets the length when it restarts and cannot be asked
reliably, so it is set again from time to time.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.core.gpus import Inventory, Mode
from lamina.core.sharing import Strategy, TimeSlice
from lamina.errors import Outside
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.polling import FailureLog, poll
from lamina.ports.time_slices import TimeSlices

log = logging.getLogger(__name__)

REFRESH_S = 60.0
"""After this time the length is set again."""
RETRY_S = 10.0
"""And after this time if the driver refused."""

ReportFailure = Callable[[str, str], Awaitable[None]]
"""Called with the UUID of a GPU and why its time slices do not have the configured length."""


class _Setting(NamedTuple):
    length: TimeSlice
    failure: str
    due: float


class TimeSliceManager:
    """The time slices of one node. `wanted` is their length on GPUs shared by time-slicing; None changes nothing."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        driver: TimeSlices,
        *,
        wanted: TimeSlice | None,
        report: ReportFailure,
    ) -> None:
        self._node = node
        self._driver = driver
        self._offers = offers
        self._wanted = wanted
        self._report = report
        self._settings: dict[str, _Setting] = {}
        self._path = node.settings.time_slices
        """Lists the GPUs whose slices were changed."""
        self._changed = _read(node.files.read(self._path))

    async def run(self) -> None:
        failures = FailureLog(log, "Cannot manage time slices: %s")
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)

    async def reconcile(self) -> None:
        """Set lengths that are due, and restore defaults. Raises Outside when the file system refuses."""
        inventory = self._offers.inventory.value
        if inventory is None:
            return
        wanted = dict.fromkeys(timesliced_gpus(inventory), self._wanted) if self._wanted is not None else {}
        wanted |= self._node.record.intervals
        self._store(self._changed | wanted.keys())
        for uuid in sorted(self._changed & self._offers.gpus.keys()):
            await self._set(uuid, wanted.get(uuid, TimeSlice.DEFAULT))
        restored = {uuid for uuid, setting in self._settings.items() if uuid not in wanted and not setting.failure}
        self._store(self._changed - restored)
        self._settings = {uuid: setting for uuid, setting in self._settings.items() if uuid in self._changed}
        slices = {uuid: (each.length, each.failure) for uuid, each in self._settings.items() if uuid in wanted}
        if slices != self._offers.state.time_slices:
            self._offers.update(time_slices=slices)

    async def ensure(self, claim: str, lengths: Mapping[str, TimeSlice]) -> None:
        """Have the GPUs of a recorded claim these lengths before it is used. Raises Outside."""
        self._store(self._changed | lengths.keys())
        for uuid, length in lengths.items():
            await self._set(uuid, length)
            if failure := self._settings[uuid].failure:
                raise Outside(f"claim {claim} cannot have turns of the length {length}: {failure}")

    async def _set(self, uuid: str, length: TimeSlice) -> None:
        before, now = self._settings.get(uuid), self._node.clock.monotonic()
        if before is not None and before.length is length and now < before.due:
            return
        failure = ""
        try:
            await self._driver.set(uuid, length)
        except Outside as error:
            failure = str(error)
        except Exception as error:
            self._node.aside.add("time slice", uuid, error)
            failure = str(error) or type(error).__name__
        else:
            self._node.aside.forget("time slice", uuid)
        if failure and (before is None or before.failure != failure):
            log.warning("%s", failure)
            await self._report(uuid, failure)
        elif not failure and (before is None or before.failure or before.length is not length):
            log.info("Set the time slice of %s to %s", uuid, length)
        self._settings[uuid] = _Setting(length, failure, now + (RETRY_S if failure else REFRESH_S))

    def _store(self, uuids: set[str]) -> None:
        if uuids != self._changed:
            self._node.files.write(self._path, msgspec.json.encode(sorted(uuids)))
            self._changed = set(uuids)


def timesliced_gpus(inventory: Inventory) -> list[str]:
    """The GPUs that are shared by time-slicing now or, if they are idle, will be."""
    resources = {each.resource for each in inventory.native_resources if each.sharing is Strategy.TIME_SLICING}
    return [
        gpu.uuid
        for gpu in inventory.gpus
        if gpu.mode is Mode.TIMESLICE or (gpu.mode is None and gpu.native_resource in resources)
    ]


def _read(content: bytes | None) -> set[str]:
    try:
        return set(msgspec.json.decode(content or b"[]", type=list[str]))
    except msgspec.DecodeError as error:
        log.warning("Ignoring the list of GPUs with changed time slices: %s", error)
        return set()


def time_slice_events(recorder: EventRecorder, node: str) -> ReportFailure:
    """Reports failures as events on the node."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def report(uuid: str, failure: str) -> None:
        await recorder.record(NODES, meta, "TimeSliceFailed", f"{uuid}: {failure}", warning=True)

    return report
