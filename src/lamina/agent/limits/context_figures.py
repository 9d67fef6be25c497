"""Tells containers what their processes use of a GPU by the driver's figures, so that contexts count at true cost.

A process asks after it has made a context, by a counter in its `usage`, and waits for some milliseconds. The driver
lists processes by the PIDs of the host, so the process cannot find itself there, but the agent can find it. The answer
is in `arbiter`, which only the agent writes.

However often containers ask, the driver is asked about one GPU after the other and rests for PAUSE_S in between.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lamina.agent.containers.paths import pod_uid_of
from lamina.agent.context import NodeContext
from lamina.enforcement.arbitration import Arbitration
from lamina.enforcement.open_container import OpenContainer
from lamina.enforcement.process_memory import SlotProcess, bytes_by_slot, slot_process, slot_processes, word
from lamina.ports.cgroups import is_of_pod
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess

PAUSE_S = 0.02
LATE_S = 0.5
"""After this long without an answer of the driver, processes go by their own guess."""
_Listed = Sequence[tuple[str, SlotProcess, int | None]]
"""Processes on a GPU: their cgroups, who they are, and the bytes that they use."""


class ContextFigures:
    """Answers the containers to which an arbitration attends. `answer_requests` never waits: a task asks the driver."""

    def __init__(self, node: NodeContext, host: Host) -> None:
        self._nvml = node.nvml
        self._record = node.record
        self._clock = node.clock
        self._aside = node.aside
        self._host = host
        self._answered: dict[OpenContainer, int] = {}
        """The number of requests that were answered. A container that starts again is another one."""
        self._answering: asyncio.Task[None] | None = None
        self._since = 0.0

    def answer_requests(self, arbitration: Arbitration) -> None:
        """Answer the containers that have asked since they were answered last."""
        containers, now = arbitration.containers, self._clock.monotonic()
        if self._answering is None or self._answering.done():
            self._answering, self._since = None, now
            asking = [each for each in containers if each.figure_requests != self._answered.get(each, 0)]
            if asking:
                self._answering = asyncio.create_task(self._answer_each(asking))
        if now - self._since < LATE_S:
            for container in containers:
                container.is_ready_for_requests(int(now * 1e9))
        self._answered = {each: self._answered[each] for each in containers if each in self._answered}

    def close(self) -> None:
        if self._answering is not None:
            self._answering.cancel()

    async def _answer_each(self, asking: Sequence[OpenContainer]) -> None:
        with self._aside.around("figures of containers", "this node"):
            await self._answer(asking)
        await self._clock.sleep(PAUSE_S)

    async def _answer(self, asking: Sequence[OpenContainer]) -> None:
        """Ask the driver once about each GPU. What slots say was read before: a process that gets the PID of one that
        the driver listed, and that has ended, is in none of them."""
        requests = {each: each.figure_requests for each in asking}
        said = {each: slot_processes(each.slots, each.devices) for each in asking}
        for gpu in {device.uuid for each in asking for device in each.limits.devices}:
            at = self._clock.monotonic()
            listed = await self._listed(gpu)
            for each in asking:
                self._tell(each, gpu, said[each], listed, at)
        self._answered |= requests

    async def _listed(self, gpu: str) -> _Listed:
        """None of them where the driver does not answer."""
        with self._aside.around("processes on a GPU", gpu):
            return list(self._known(await self._nvml.processes(gpu)))
        return ()

    def _known(self, processes: Iterable[GpuProcess]) -> Iterable[tuple[str, SlotProcess, int | None]]:
        for process in processes:
            if (identity := self._host.process_identity(process.pid)) is not None:
                who = slot_process(identity.pid, identity.start)
                yield self._host.process_cgroups(process.pid), who, process.memory_bytes

    def _tell(
        self, container: OpenContainer, gpu: str, said: Mapping[int, SlotProcess], listed: _Listed, at: float
    ) -> None:
        pods = self._record.pods_of(pod_uid_of(Path(container.name).name))
        own = [(who, used) for cgroups, who, used in listed if any(is_of_pod(cgroups, pod) for pod in pods)]
        words = {slot: word(used, at) for slot, used in bytes_by_slot(said, own).items()}
        for device, limit in enumerate(container.limits.devices):
            if limit.uuid == gpu:
                container.tell_figures(device, words)
