"""Events about the files of containers: GPU memory that was refused, and files that a container has spoiled.

The facade counts refusals in the usage file, which the tenant can write. So a container gets one event at most in
QUIET_S, whatever is in its file, and only its own pod is named. Containers of a request of a claim have one file, so
their events are the claim's. What containers have made of their files is reported once for each container and problem,
in the log, in a metric and as an event on the pod.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lamina.agent.containers.paths import folder_name
from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import Bound
from lamina.core.quantities import MIB
from lamina.enforcement import read_limits, read_usage
from lamina.enforcement.files import LIMITS, USAGE
from lamina.errors import BadInput, LaminaError
from lamina.ports.kube import PODS, RESOURCE_CLAIMS

REASON = "OutOfGpuMemory"
LOOK_S = 10.0
QUIET_S = 300.0


class RefusalCount(NamedTuple):
    """What a container's files say of one GPU, in bytes."""

    refusals: int
    limit: int
    peak: int


class _Holder(NamedTuple):
    """A container, or a request of a claim, and the number of a GPU among those it has."""

    bound: Bound
    device: int


class _Reported(NamedTuple):
    refusals: int
    at: float


class RefusalEvents:
    """Refusals from before the start of the agent are not reported again."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._reported: dict[tuple[str, str, int], _Reported] | None = None

    async def run(self) -> None:
        while True:
            await self.reconcile()
            await self._node.clock.sleep(LOOK_S)

    async def reconcile(self) -> None:
        """Write the events that are due."""
        counts = await asyncio.to_thread(lambda: list(self._counts()))
        now, before = self._node.clock.monotonic(), self._reported
        self._reported = {}
        for holder, count in counts:
            key = (holder.bound.pod_uid, holder.bound.container, holder.device)
            if before is None:
                self._reported[key] = _Reported(count.refusals, now - QUIET_S)
                continue
            last = before.get(key, _Reported(0, now - QUIET_S))
            if count.refusals < last.refusals:  # the container has started again, with a new file
                last = last._replace(refusals=0)
            more = count.refusals - last.refusals
            if more and now - last.at >= QUIET_S:
                await self._report(holder, more, count)
                last = _Reported(count.refusals, now)
            self._reported[key] = last

    async def _report(self, holder: _Holder, more: int, count: RefusalCount) -> None:
        bound = holder.bound
        pod = {"metadata": {"namespace": bound.namespace, "name": bound.pod, "uid": bound.pod_uid}}
        who = f"{'request' if bound.of_claim else 'container'} {bound.container}"
        kind = RESOURCE_CLAIMS if bound.of_claim else PODS
        await self._node.events.record(kind, pod, REASON, message(who, more, count), warning=True)

    def _counts(self) -> Iterator[tuple[_Holder, RefusalCount]]:
        """What the files of all prepared containers say. A container that fails is set aside."""
        known: set[tuple[str, str]] = set()
        for bound in self._node.record.containers:
            if (bound.pod_uid, bound.container) in known:
                continue
            known.add((bound.pod_uid, bound.container))
            with self._node.aside.around("refusals of a container", f"{bound.namespace}/{bound.pod}"):
                yield from self._of(bound)

    def _of(self, bound: Bound) -> list[tuple[_Holder, RefusalCount]]:
        folder = self._node.paths.containers / folder_name(bound.pod_uid, bound.container)
        if not self._node.files.has_file(folder / LIMITS):
            return []  # a whole GPU, or an instance
        try:
            limits, usage = read_limits(folder / LIMITS), read_usage(folder / USAGE)
        except LaminaError:
            return []  # half-written, being removed, or spoiled by its tenant
        devices = {device.uuid: device for device in usage.devices}
        return [
            (_Holder(bound, place), RefusalCount(used.refusals, limit.memory_bytes, used.peak))
            for place, limit in enumerate(limits.devices)
            if (used := devices.get(limit.uuid)) is not None
        ]


def message(who: str, more: int, count: RefusalCount) -> str:
    """The sentence of an event. A peak beyond the limit is not possible, so it is not repeated."""
    what = "an allocation of GPU memory was refused" if more == 1 else f"{more} allocations of GPU memory were refused"
    limit, peak = count.limit // MIB, min(count.peak, count.limit) // MIB
    return f"{who}: {what}: its limit is {limit} MiB, and at most {peak} MiB were in use"


KIND = "ContainerFiles"
_MAX_WAITING = 1000
"""Events that wait for the API server; more are only logged."""


class _Event(NamedTuple):
    bound: Bound
    problem: str


class FileEvents:
    """`report` never waits, because the loop that calls it must not; `run` writes the events."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._waiting: asyncio.Queue[_Event] = asyncio.Queue(_MAX_WAITING)

    def report(self, folder: Path, problem: str) -> None:
        """Report a problem with the files in the directory of a container."""
        bound = self._bound(folder.name)
        name = f"{bound.namespace}/{bound.pod}, container {bound.container}" if bound else folder.name
        if self._node.aside.add(KIND, name, BadInput(problem)) and bound is not None:
            with contextlib.suppress(asyncio.QueueFull):
                self._waiting.put_nowait(_Event(bound, problem))

    async def run(self) -> None:
        while True:
            bound, problem = await self._waiting.get()
            pod = {"metadata": {"namespace": bound.namespace, "name": bound.pod, "uid": bound.pod_uid}}
            message = f"container {bound.container}: {problem}"
            await self._node.events.record(PODS, pod, "LimitFilesChanged", message, warning=True)

    def _bound(self, folder: str) -> Bound | None:
        bounds = (allocation.bound for allocation in self._node.record.allocations if allocation.bound)
        return next((each for each in bounds if folder_name(each.pod_uid, each.container) == folder), None)
